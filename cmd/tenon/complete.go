package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// chatWords are the words of chat that are no server's.
var chatWords = []string{"/compact", "/exit", "/help", "/prompts", "/resources", "/session", "/tools"}

// offers is what completion may ask for. A server is asked only once its name is there:
// Tab must not start all of them.
type offers struct {
	servers   []string
	prompts   func(server string) ([]host.ServerPrompt, error)
	resources func(server string) ([]host.ServerResource, error)
}

// completion is what Tab does to a line: the text in place of the last bytes before the
// cursor, and what is shown above it.
type completion struct {
	back int
	text string
	note string
}

const (
	completeWait = 5 * time.Second // for a server that has to be asked first
	maxShown     = 60              // possibilities that are shown
)

// completer completes the lines of chat. In a replay no server is asked: lists that
// nobody recorded would break it. The servers of another tenon are not asked either.
func (a *app) completer(d desk, replay bool) func(ctx context.Context, line string) completion {
	h, ok := d.(*host.Host)
	if !ok {
		return func(_ context.Context, line string) completion { return complete(line, offers{}, a.width()) }
	}
	return func(ctx context.Context, line string) completion {
		ctx, cancel := context.WithTimeout(ctx, completeWait)
		defer cancel()
		o := offers{servers: serverNames(h),
			prompts: func(server string) ([]host.ServerPrompt, error) {
				list, problems, err := h.Prompts(ctx, server)
				return list, firstOf(err, problems)
			},
			resources: func(server string) ([]host.ServerResource, error) {
				list, problems, err := h.Resources(ctx, server)
				return list, firstOf(err, problems)
			}}
		if replay {
			o.prompts = func(string) ([]host.ServerPrompt, error) { return nil, nil }
			o.resources = func(string) ([]host.ServerResource, error) { return nil, nil }
		}
		return complete(line, o, a.width())
	}
}

func firstOf(err error, problems []host.Problem) error {
	if err == nil && len(problems) > 0 {
		return problems[0].Err
	}
	return err
}

// complete says what Tab does behind a line.
func complete(line string, o offers, width int) completion {
	word, list, err := possible(line, o)
	if err != nil {
		return completion{note: "tenon: " + shorten(safeLine(err.Error()), max(width-8, 20))}
	}
	// What cannot be typed, or would not be seen, is not offered.
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

// possible returns the word that is begun and what it may become; what is a whole word
// ends with a blank.
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
		}
	case from == 0 && strings.HasPrefix(word, "/") && !colon:
		for _, w := range chatWords {
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
	}
	return word, list, err
}

// possibleArguments are the arguments of the prompt that a line begins with, without
// those that it gives.
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
	prompts = slices.DeleteFunc(slices.Clone(prompts), func(p host.ServerPrompt) bool { return !strings.HasPrefix(p.Name, name) })
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

// columns shows possibilities beside each other.
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
