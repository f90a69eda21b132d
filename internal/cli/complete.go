package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// chatWords are the built-in commands of chat.
var chatWords = []string{"/compact", "/exit", "/help", "/prompts", "/resources", "/session", "/tools"}

// offers gives completion its candidates. A server is asked only if the line contains its name, so that Tab does not
// start all servers.
type offers struct {
	words     []string // commands besides chatWords
	servers   []string
	prompts   func(server string) ([]host.ServerPrompt, error)
	resources func(server string) ([]host.ServerResource, error)
	values    func(server string, r servers.CompletionRequest) ([]string, error) // if nil, no server is asked
}

// completion is the effect of Tab on a line: text replaces the last back bytes before the cursor, and note is shown
// above the line.
type completion struct {
	back int
	text string
	note string
}

const (
	completeWait = 5 * time.Second // limit for asking a server
	maxShown     = 60              // limit of candidates that are shown
)

// completer completes the lines of chat. In a replay it asks no server: a list that is not recorded would break the
// replay. It does not ask the servers of a remote tenon either.
func (a *app) completer(d desk, replay bool, words ...string) func(ctx context.Context, line string) completion {
	h, ok := d.(*host.Host)
	if !ok {
		return func(_ context.Context, line string) completion {
			return complete(line, offers{words: words}, a.width())
		}
	}
	return func(ctx context.Context, line string) completion {
		ctx, cancel := context.WithTimeout(ctx, completeWait)
		defer cancel()
		o := offersOf(ctx, h)
		o.words = words
		if replay {
			o.values = nil
			o.prompts = func(string) ([]host.ServerPrompt, error) { return nil, nil }
			o.resources = func(string) ([]host.ServerResource, error) { return nil, nil }
		}
		return complete(line, o, a.width())
	}
}

// offersOf returns what the servers of a host listed last. It asks a server that is connected or was never listed.
func offersOf(ctx context.Context, h *host.Host) offers {
	return offers{servers: serverNames(h),
		prompts: func(server string) ([]host.ServerPrompt, error) {
			k, err := h.Servers().Context().Known().Prompts(ctx, server)
			return k.Items, firstOf(err, k.Problems)
		},
		resources: func(server string) ([]host.ServerResource, error) {
			k, err := h.Servers().Context().Known().Resources(ctx, server)
			return k.Items, firstOf(err, k.Problems)
		},
		values: func(server string, r servers.CompletionRequest) ([]string, error) {
			s, err := host.OffersOf(h, server)
			if err != nil {
				return nil, nil // there is no such server
			}
			found, err := s.Complete(ctx, r)
			return found.Values, err
		}}
}

func firstOf(err error, problems []host.Problem) error {
	if err == nil && len(problems) > 0 {
		return problems[0].Err
	}
	return err
}

// complete returns the effect of Tab at the end of a line.
func complete(line string, o offers, width int) completion {
	word, list, err := possible(line, o)
	if err != nil {
		return completion{note: "tenon: " + shorten(safeLine(err.Error()), max(width-8, 20))}
	}
	// Candidates that cannot be typed, or that contain hidden characters, are not offered.
	list = slices.DeleteFunc(list, func(s string) bool {
		s = strings.TrimSuffix(s, " ")
		return !strings.HasPrefix(s, word) || strings.ContainsAny(s, " \t\n") || s != tenon.Visible(s)
	})
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) == 0 {
		return completion{}
	}
	common := list[0]
	for _, s := range list[1:] {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	common = strings.ToValidUTF8(common, "")
	if len(list) == 1 || len(common) > len(word) {
		return completion{back: len(word), text: common}
	}
	return completion{note: columns(list, width)}
}

// possible returns the last word of a line and its candidates. A candidate that completes the word ends with a blank.
func possible(line string, o offers) (word string, list []string, err error) {
	from := strings.LastIndexAny(line, " \t") + 1
	word = line[from:]
	name, rest, colon := strings.Cut(strings.TrimLeft(word, "/@"), ":")
	switch {
	case strings.HasPrefix(word, "@") && !colon:
		for _, s := range o.servers {
			list = append(list, "@"+s+":")
		}
	case strings.HasPrefix(word, "@") && slices.Contains(o.servers, name):
		resources, err := o.resources(name)
		if err != nil {
			return word, nil, err
		}
		for _, r := range resources {
			uri := r.URI + " "
			if r.Template != "" {
				uri, _, _ = strings.Cut(r.Template, "{")
			}
			if uri != rest {
				list = append(list, "@"+name+":"+uri)
			}
			filled, err := possibleURIs(name, rest, r.Template, o)
			if err != nil {
				return word, nil, err
			}
			list = append(list, filled...)
		}
	case from == 0 && strings.HasPrefix(word, "/") && !colon:
		for _, w := range append(slices.Clip(o.words), chatWords...) {
			list = append(list, w+" ")
		}
		for _, s := range o.servers {
			list = append(list, "/"+s+":")
		}
	case from == 0 && strings.HasPrefix(word, "/") && slices.Contains(o.servers, name):
		prompts, err := o.prompts(name)
		if err != nil {
			return word, nil, err
		}
		for _, p := range prompts {
			list = append(list, "/"+name+":"+p.Name+" ")
		}
	case from > 0 && strings.HasPrefix(line, "/") && !strings.Contains(word, "="):
		list, err = possibleArguments(line[1:from], o)
	case from > 0 && strings.HasPrefix(line, "/"):
		list, err = possibleValues(line[1:from], word, o)
	}
	return word, list, err
}

// possibleArguments returns the missing arguments of the prompt that a line begins with.
func possibleArguments(line string, o offers) ([]string, error) {
	words := quoted(line)
	if len(words) == 0 {
		return nil, nil
	}
	server, name, colon := strings.Cut(words[0], ":")
	if !colon || !slices.Contains(o.servers, server) {
		return nil, nil
	}
	prompts, err := o.prompts(server)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(prompts, func(p host.ServerPrompt) bool { return p.Name == name }); i >= 0 {
		prompts = prompts[i : i+1]
	}
	prompts = slices.DeleteFunc(slices.Clone(prompts),
		func(p host.ServerPrompt) bool { return !strings.HasPrefix(p.Name, name) })
	if len(prompts) != 1 {
		return nil, nil
	}
	var list []string
	for _, arg := range prompts[0].Arguments {
		if !slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, arg.Name+"=") }) {
			list = append(list, arg.Name+"=")
		}
	}
	return list, nil
}

// possibleURIs returns the URIs that complete typed according to a template with one variable, at its end. The server
// offers the values of the variable.
func possibleURIs(server, typed, template string, o offers) (list []string, err error) {
	prefix, variable, ok := strings.Cut(template, "{")
	variable, ends := strings.CutSuffix(variable, "}")
	value, begun := strings.CutPrefix(typed, prefix)
	if !ok || !ends || !begun || o.values == nil || strings.ContainsAny(variable, "{}+#./;?&*:,") {
		return nil, nil
	}
	values, err := o.values(server, servers.CompletionRequest{Template: template, Argument: variable, Value: value})
	for _, v := range values {
		list = append(list, "@"+server+":"+prefix+url.PathEscape(v)+" ")
	}
	return list, err
}

// possibleValues returns the values of a prompt's argument that the server offers for its text so far.
func possibleValues(line, word string, o offers) (list []string, err error) {
	words := quoted(line)
	name, value, _ := strings.Cut(word, "=")
	if len(words) == 0 || o.values == nil {
		return nil, nil
	}
	server, prompt, colon := strings.Cut(words[0], ":")
	if !colon || !slices.Contains(o.servers, server) {
		return nil, nil
	}
	r := servers.CompletionRequest{Prompt: prompt, Argument: name, Value: value, Others: map[string]string{}}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			r.Others[k] = v
		}
	}
	values, err := o.values(server, r)
	for _, v := range values {
		list = append(list, name+"="+v+" ")
	}
	return list, err
}

// columns formats candidates in columns.
func columns(list []string, width int) string {
	more := ""
	if len(list) > maxShown {
		list, more = list[:maxShown], fmt.Sprintf("\n… and %d more", len(list)-maxShown)
	}
	widest := 0
	for _, s := range list {
		widest = max(widest, len(strings.TrimSuffix(s, " ")))
	}
	each := max(width/(widest+2), 1)
	var b strings.Builder
	for i, s := range list {
		s = strings.TrimSuffix(s, " ")
		switch {
		case i == 0:
		case i%each == 0:
			b.WriteByte('\n')
		default:
			b.WriteString(strings.Repeat(" ", widest+2-len(strings.TrimSuffix(list[i-1], " "))))
		}
		b.WriteString(s)
	}
	return b.String() + more
}
