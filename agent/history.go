package agent

import "github.com/tenonhq/tenon"

// Renamed returns a message in which tools have other names: from → to. Those that
// are not in names keep theirs. The message itself is not changed.
func Renamed(m *tenon.Message, names map[string]string) *tenon.Message {
	out := &tenon.Message{Role: m.Role, By: m.By, Parts: append([]tenon.Part(nil), m.Parts...)}
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

// addHistory puts a conversation from elsewhere before the question, under the
// names that the model sees.
func (s *State) addHistory() {
	for _, m := range s.spec.History {
		s.add(Renamed(m, s.spec.Exposed))
	}
}

// TaskImport is the task of a run that only holds a conversation from elsewhere, its
// History: [Spec.Task]. It asks no model.
const TaskImport = "import"

// Foreign returns the state of a run that came from a file, for runs that go on from
// it here. They get what was said, and no more: nothing that was granted there counts,
// nor the state that the agent had come to, and what a provider's wire had beside what was said (signatures, reasoning that only
// the account which made it can use) is left out. The state itself is not changed.
func (s *State) Foreign() *State {
	out := *s
	out.messages, out.history = plain(s.Messages()), plain(s.History())
	out.grants, out.calls, out.steer, out.state = nil, nil, nil, ""
	out.tables, out.toldData = nil, false // they lie in another store
	out.known, out.knownAt = 0, 0         // another model may count otherwise
	return &out
}

// plain returns messages without the forms of a wire.
func plain(messages []*tenon.Message) []*tenon.Message {
	out := make([]*tenon.Message, len(messages))
	for i, m := range messages {
		out[i] = m.Plain()
	}
	return out
}
