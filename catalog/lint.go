package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

// The levels of a [Finding].
const (
	LevelError = "error" // the tool, or the request with it, would be refused
	LevelWarn  = "warn"  // it works, but less well than possible
	LevelInfo  = "info"  // a change of the schema for a provider
)

// Finding is a fact about a tool that its owner should know before a model uses the tool.
type Finding struct {
	Level    string `json:"level"`
	Provider string `json:"provider,omitempty"` // "" means every provider
	Server   string `json:"server,omitempty"`   // "" means the whole list
	Tool     string `json:"tool,omitempty"`     // exposed name
	Pointer  string `json:"pointer,omitempty"`  // JSON pointer into the schema
	Message  string `json:"message"`
}

// maxDescription is the number of characters above which OpenAI cuts or refuses a description.
const maxDescription = 1024

// Lint checks the tools against the rules of the given providers.
func (s *Snapshot) Lint(providers []string) []Finding {
	list := []Finding{}
	for _, w := range s.withheld {
		if !strings.HasPrefix(w.Reason, "include:") && !strings.HasPrefix(w.Reason, "exclude:") &&
			!strings.HasPrefix(w.Reason, "where:") {
			list = append(list, Finding{Level: LevelError, Server: w.Server, Tool: w.Remote,
				Message: "left out: " + w.Reason})
		}
	}
	for _, t := range s.tools {
		list = append(list, s.lintTool(t)...)
	}
	for _, p := range providers {
		if most := MaxTools(p); most > 0 && len(s.tools) > most {
			list = append(list, Finding{Level: LevelError, Provider: p,
				Message: fmt.Sprintf("%d tools, and a request takes %d: leave some out with include, exclude or the "+
					"agent's tools", len(s.tools), most)})
		}
		for _, t := range s.tools {
			input, changes, err := Portable(p, t.Input)
			for _, c := range changes {
				list = append(list, Finding{LevelInfo, p, t.Server, t.Name, c.Pointer, c.What})
			}
			if err == nil {
				_, changes, why := strictly(p, t, input)
				for _, c := range changes {
					list = append(list, Finding{LevelInfo, p, t.Server, t.Name, c.Pointer, c.What})
				}
				if why != nil {
					list = append(list, Finding{LevelWarn, p, t.Server, t.Name, why.Pointer, why.What})
				}
			}
			if err != nil {
				list = append(list, Finding{Level: LevelError, Provider: p, Server: t.Server, Tool: t.Name,
					Message: "cannot be sent: " + err.Error()})
			}
		}
	}
	return list
}

// longest returns the maximum length for names of a server's tools.
func (s *Snapshot) longest(server string) int {
	for _, l := range s.listings {
		if l.source.Server == server {
			return l.source.Naming.max()
		}
	}
	return maxName
}

// isShared reports whether another tool has, or wanted, a name that t wanted.
func (s *Snapshot) isShared(t *tenon.Tool, name string) bool {
	return slices.ContainsFunc(s.tools, func(other *tenon.Tool) bool {
		return (other.Server != t.Server || other.Remote != t.Remote) &&
			(other.Name == name || other.Rules.Wanted == name)
	})
}

// lintTool checks the rules that are the same for every provider.
func (s *Snapshot) lintTool(t *tenon.Tool) []Finding {
	var list []Finding
	add := func(level, pointer, format string, args ...any) {
		list = append(list, Finding{Level: level, Server: t.Server, Tool: t.Name, Pointer: pointer,
			Message: fmt.Sprintf(format, args...)})
	}
	if strings.TrimSpace(t.Description) == "" {
		add(LevelWarn, "", "has no description: the model can only guess from the name")
	}
	if n := utf8.RuneCountInString(t.Description); n > maxDescription {
		add(LevelWarn, "", "has a description of %d characters; some providers take %d", n, maxDescription)
	}
	for _, step := range s.Explain(t.Server, t.Remote) {
		switch {
		case step.Step == "unique":
			if most := s.longest(t.Server); len(step.Before) > most && !s.isShared(t, step.Before) {
				add(LevelWarn, "", "is called so because its name '%s' is longer than %d characters", step.Before, most)
				break
			}
			add(LevelWarn, "", "is called so because its name '%s' clashes with another tool's", step.Before)
		case step.Field == stepArguments:
			add(LevelWarn, "", "has a configured argument that is %s", step.After)
		case step.Step == "text":
			add(LevelWarn, "", "has hidden characters in its %s; they are shown escaped", step.Field)
		case step.Step == "schema" && step.Field == "input_schema":
			if what := adapted(step.Before, t); what != "" {
				add(LevelInfo, "", "%s", what)
			}
		}
	}
	for _, u := range s.Unchecked(t) {
		add(LevelWarn, u.Pointer, "has a part in its %s that is not checked: %s", u.Field, u.Reason)
	}
	if names, whys := contradictions(t); len(names) > 0 {
		for i, name := range names {
			add(LevelWarn, "/properties/"+name, "has a parameter that contradicts itself: %s", whys[i])
		}
	}
	var bare []string
	for _, p := range Parameters(t) {
		if p.Description == "" {
			bare = append(bare, p.Name)
		}
	}
	if len(bare) > 0 {
		add(LevelInfo, "/properties", "has parameters without a description: %s", strings.Join(bare, ", "))
	}
	return list
}

// adapted describes how the server's schema became the schema of an object. It returns "" if there is nothing to
// report. The model gets t.Input, to which the configuration may have added arguments.
func adapted(before string, t *tenon.Tool) string {
	sent := shorten(string(t.Input), 200)
	raw := bytes.TrimSpace([]byte(before))
	switch o, ok := parseObject(raw); {
	case t.Rules.Wrapped:
		return "has a schema that is not one of an object; it is sent as " + sent
	case ok && text(o.get("type")) == "object":
		return "has references to anchors in its schema; they are sent as JSON pointers"
	case ok:
		return "has a schema whose type is not 'object' alone; it is sent as " + sent
	case len(Parameters(t)) > 0:
		return "" // the configuration describes the arguments
	}
	return "has no schema, so the model sees no arguments; it is sent as " + sent
}

// For returns the tools in the form that a provider accepts. It leaves out tools that the provider would refuse, and
// returns them with the reasons. It returns the same slice each time.
func (s *Snapshot) For(provider string) ([]tenon.Tool, []Withheld) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.views[provider]; ok {
		return v.tools, v.withheld
	}
	v, same := view{tools: s.copies()}, true
	for i, t := range s.tools {
		input, changes, err := Portable(provider, t.Input)
		loose := false
		if err == nil {
			var more []Change
			var why *Change
			input, more, why = strictly(provider, t, input)
			changes, loose = append(changes, more...), why != nil
		}
		if same && err == nil && len(changes) == 0 && !loose {
			continue
		}
		if same {
			v.tools, same = slices.Clone(v.tools[:i]), false
		}
		if err != nil {
			v.withheld = append(v.withheld, Withheld{t.Server, t.Remote, err.Error()})
			continue
		}
		changed := *t
		if loose {
			changed = lax(changed)
		}
		changed.Input = input
		v.tools = append(v.tools, changed)
	}
	if s.views == nil {
		s.views = map[string]view{}
	}
	s.views[provider] = v
	return v.tools, v.withheld
}

// copies returns the tools as values. The first call makes them, since most snapshots are never sent.
func (s *Snapshot) copies() []tenon.Tool {
	if s.whole == nil {
		s.whole = make([]tenon.Tool, len(s.tools))
		for i, t := range s.tools {
			s.whole[i] = *t
		}
	}
	return s.whole
}

// view is a snapshot in the form for one provider.
type view struct {
	tools    []tenon.Tool
	withheld []Withheld
}
