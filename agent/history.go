package agent

import "github.com/tenonhq/tenon"

// Renamed returns a copy of a message in which tools have new names; names maps old names to new ones. Tools that are
// not in names keep theirs.
func Renamed(m *tenon.Message, names map[string]string) *tenon.Message {
	out := &tenon.Message{Role: m.Role, By: m.By, Partial: m.Partial, Parts: append([]tenon.Part(nil), m.Parts...)}
	for i, p := range out.Parts {
		if p.Call != nil {
			if name, ok := names[p.Call.Name]; ok {
				c := *p.Call
				c.Name, out.Parts[i].Call = name, &c
			}
		}
		if p.Result != nil {
			if name, ok := names[p.Result.Name]; ok {
				r := *p.Result
				r.Name, out.Parts[i].Result = name, &r
			}
		}
	}
	return out
}

// addHistory adds an imported conversation before the question, with the tool names that the model sees.
func (s *State) addHistory() {
	for _, m := range s.spec.History {
		s.add(Renamed(m, s.spec.Exposed))
	}
}

// TaskImport is the [Spec.Task] of a run that only holds an imported conversation, its History. It asks no model.
const TaskImport = "import"

// Foreign returns a copy of the state of an imported run, for runs that continue it here. It keeps only the
// conversation. It drops the grants and the agent's state, and also the provider's own data, such as signatures and
// reasoning that only the account that made them can use.
func (s *State) Foreign() *State {
	out := *s
	out.messages, out.history = plain(s.Messages()), plain(s.History())
	out.grants, out.calls, out.steer, out.state = nil, nil, nil, ""
	out.tables, out.toldData = nil, false // their bytes are in another store
	out.known, out.knownAt = 0, 0         // another model may count tokens in another way
	return &out
}

// Forked returns a copy of the state of a run, for runs of another session or principal that continue it. It keeps
// the conversation, but not the tools that were allowed for the session.
func (s *State) Forked() *State {
	out := *s
	out.grants = nil
	return &out
}

// plain returns copies of messages without the provider's own data.
func plain(messages []*tenon.Message) []*tenon.Message {
	out := make([]*tenon.Message, len(messages))
	for i, m := range messages {
		out[i] = m.Plain()
	}
	return out
}
