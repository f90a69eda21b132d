package agent

import "slices"

// View is what a run tells its model of the tools that it began with. Which of them
// have to be found, and in which states they are visible, stands in the tools
// themselves, so that a run that is resumed shows the same.
type View struct {
	Tools string `json:"tools,omitempty"` // digest of the tool snapshot; empty: no tools
	// State is the one in which the agent is; "": of a run that knew no states.
	State     string   `json:"state,omitempty"`
	Found     []string `json:"found,omitempty"`     // exposed names that the model has found, in order
	Artifacts bool     `json:"artifacts,omitempty"` // there is a result that the model can read piece by piece
	Data      int      `json:"data,omitempty"`      // tables that the conversation has; their ids are below it
}

// KindQuery is the kind of a [Decision] about the tool that looks into tables.
const KindQuery = "query"

// KindSearch is the kind of a [Decision] about the tool that finds others.
const KindSearch = "search"

// maxFound bounds the tools that a conversation has found; the oldest are forgotten,
// and can be found again.
const maxFound = 100

// View returns what the model is told of the tools now.
func (s *State) View() View {
	return View{Tools: s.spec.Tools, State: s.state, Found: slices.Clip(s.found), Artifacts: s.artifacts, Data: len(s.tables)}
}

// addFound takes what a search has found. The new ones stand behind the others, so
// that the request begins as it did before.
func (s *State) addFound(names []string) {
	for _, n := range names {
		if !slices.Contains(s.found, n) {
			s.found = append(slices.Clip(s.found), n)
		}
	}
	if over := len(s.found) - maxFound; over > 0 {
		s.found = s.found[over:]
	}
}

// moveState takes the state to which the calls of a turn lead: each one that has
// succeeded moves it, in the order in which the model made them.
func (s *State) moveState() {
	for _, c := range s.calls {
		if c.succeeded && c.decision.NextState != "" {
			s.state = c.decision.NextState
		}
	}
}

// beginState is the state in which a run begins: the one that it is asked in, else
// the one that the conversation was in under the same agent, else the agent's own.
func beginState(spec Spec, parent *State) string {
	if parent == nil || spec.StateAsked || parent.state == "" || parent.spec.Agent != spec.Agent {
		return spec.State
	}
	return parent.state
}
