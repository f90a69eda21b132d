package agent

import "slices"

// View selects the tools that the model sees. The tools in the snapshot say which of them must be found first and in
// which states they are visible, so a resumed run shows the same tools.
type View struct {
	Tools string `json:"tools,omitempty"` // digest of the tool snapshot; empty if there are no tools
	// State is the agent's state; "" in runs from before states existed.
	State     string   `json:"state,omitempty"`
	Found     []string `json:"found,omitempty"`     // exposed names that the model has found, in order
	Artifacts bool     `json:"artifacts,omitempty"` // a result has an artifact that the model can read in parts
	Data      int      `json:"data,omitempty"`      // number of tables of the conversation; ids are 0 to Data-1
}

// KindQuery is the kind of a [Decision] about the tool that queries tables.
const KindQuery = "query"

// KindSearch is the kind of a [Decision] about the tool that finds other tools.
const KindSearch = "search"

// maxFound limits the tools that a conversation has found. The oldest ones are dropped and can be found again.
const maxFound = 100

// View returns the present selection of tools for the model.
func (s *State) View() View {
	return View{Tools: s.spec.Tools, State: s.state, Found: slices.Clip(s.found), Artifacts: s.artifacts,
		Data: len(s.tables)}
}

// addFound adds tools that a search has found. It appends them, so that the request keeps its prefix.
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

// moveState moves the agent to the next state of each successful call of the turn, in the order of the calls.
func (s *State) moveState() {
	for _, c := range s.calls {
		if c.succeeded && c.decision.NextState != "" {
			s.state = c.decision.NextState
		}
	}
}

// beginState returns the first state of a run: the requested state; or else the conversation's state, if the agent is
// the same; or else the agent's first state.
func beginState(spec Spec, parent *State) string {
	if parent == nil || spec.StateAsked || parent.state == "" || parent.spec.Agent != spec.Agent {
		return spec.State
	}
	return parent.state
}
