package agent

import (
	"github.com/tenonhq/tenon"
)

// Renamed returns a message in which tools have other names: from → to. Those that
// are not in names keep theirs. The message itself is not changed.
func Renamed(m *tenon.Message, names map[string]string) *tenon.Message {
	out := &tenon.Message{Role: m.Role, Parts: append([]tenon.Part(nil), m.Parts...)}
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
