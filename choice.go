package tenon

import (
	"slices"
	"strings"
)

// Choice is a tool choice. It says whether a model may or must call tools, and which tools.
type Choice struct {
	Mode string // auto, any or none
	// Names are the exposed names of the tools that may be called; nil means all of them.
	Names []string
}

// autoOf is the prefix of a list of tools that the model may call, but need not call.
const autoOf = "auto:"

// ParseChoice parses a tool choice. The values auto (or ""), any and none apply to all tools. The exposed name of a
// tool, or a list of names separated by commas, means that the model must call one of these tools. If "auto:" precedes
// the list, the model may call one of them. It must not call a tool that is not in the list.
func ParseChoice(s string) Choice {
	switch s {
	case "", "auto":
		return Choice{Mode: "auto"}
	case "any", "none":
		return Choice{Mode: s}
	}
	c := Choice{Mode: "any"}
	if rest, ok := strings.CutPrefix(s, autoOf); ok {
		c.Mode, s = "auto", rest
	}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(c.Names, name) {
			c.Names = append(c.Names, name)
		}
	}
	if c.Names == nil {
		c.Names = []string{} // no tool
	}
	return c
}

// IsList reports whether the choice consists of several tools, or of tools that the model may call but need not call.
func (c Choice) IsList() bool { return c.Names != nil && (c.Mode == "auto" || len(c.Names) != 1) }

// Forces reports whether the model must call a tool.
func (c Choice) Forces() bool { return c.Mode == "any" }

// String returns the form that [ParseChoice] reads.
func (c Choice) String() string {
	list := strings.Join(c.Names, ",")
	switch {
	case c.Names == nil:
		return c.Mode
	case c.Mode == "auto":
		return autoOf + list
	}
	return list
}

// Without returns the choice without some names. If none of its names remain, a choice that forces a call becomes auto,
// and any other choice becomes none.
func (c Choice) Without(names []string) Choice {
	if c.Names == nil {
		return c
	}
	left := slices.DeleteFunc(slices.Clone(c.Names), func(n string) bool { return slices.Contains(names, n) })
	switch {
	case len(left) > 0:
	case c.Mode == "any":
		return Choice{Mode: "auto"}
	default:
		return Choice{Mode: "none"}
	}
	return Choice{Mode: c.Mode, Names: left}
}
