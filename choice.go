package tenon

import (
	"slices"
	"strings"
)

// Choice is a tool choice: whether a model calls tools, and which.
type Choice struct {
	Mode string // auto, any or none
	// Names are the exposed names of the tools that may be called; nil means all of them.
	Names []string
}

// autoOf begins a choice of tools that the model may call and need not.
const autoOf = "auto:"

// ParseChoice reads a tool choice: auto (or ""), any and none are about all tools. A tool's exposed name, or a list of
// names separated by commas, means that the model must call one of them. After "auto:" it may call one of them, and no
// other tool.
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
		c.Names = []string{} // of no tool
	}
	return c
}

// IsList reports whether the choice is about several tools, or about tools that the model need not call.
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

// Without returns the choice without some names. Of a choice that has no others, auto is left if a tool had to be
// called, and otherwise none.
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
