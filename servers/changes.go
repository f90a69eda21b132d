package servers

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// maxTold is the maximum number of names that are logged for one kind of change.
const maxTold = 20

// listMember is a member of a list, reduced to the fields that are compared.
type listMember struct {
	name string
	raw  []byte
}

func toolMember(t tenon.Tool) listMember   { return listMember{t.Remote, t.Raw} }
func promptMember(p mcp.Prompt) listMember { return listMember{p.Name, p.Raw} }
func resourceMember(r mcp.Resource) listMember {
	return listMember{r.URI + r.Template, r.Raw} // one of the two
}

func membersOf[T any](items []T, of func(T) listMember) []listMember {
	out := make([]listMember, len(items))
	for i, item := range items {
		out[i] = of(item)
	}
	return out
}

// tellChanges logs the added, removed and changed members of a list ("tools", "prompts", "resources"). It writes to the
// log and to the server's own log, which tenon servers logs shows. It ignores a change of the order only.
func (s *Server) tellChanges(list string, before, after []listMember) {
	was := make(map[string][]byte, len(before))
	for _, m := range before {
		was[m.name] = m.raw
	}
	var added, changed, removed []string
	for _, m := range after {
		raw, known := was[m.name]
		switch {
		case !known:
			added = append(added, m.name)
		case !bytes.Equal(raw, m.raw):
			changed = append(changed, m.name)
		}
		delete(was, m.name)
	}
	for _, m := range before {
		if _, gone := was[m.name]; gone {
			removed = append(removed, m.name)
			delete(was, m.name) // a list may contain a name twice
		}
	}
	var parts []string
	for _, p := range []struct {
		word  string
		names []string
	}{{"added", added}, {"removed", removed}, {"changed", changed}} {
		if len(p.names) > 0 {
			parts = append(parts, p.word+" "+few(p.names))
		}
	}
	if parts == nil {
		return
	}
	text := fmt.Sprintf("the list of %s changed: %s", list, strings.Join(parts, "; "))
	s.notify(Notification{List: list, Added: added, Removed: removed, Changed: changed})
	s.note("state", text)
	s.log.Info("MCP server: "+text, "list", list)
}

// few returns the first names, escaped for display.
func few(names []string) string {
	shown := slices.Clone(names[:min(len(names), maxTold)])
	for i := range shown {
		shown[i] = clean(shown[i])
	}
	text := strings.Join(shown, ", ")
	if n := len(names) - len(shown); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
