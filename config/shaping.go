package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// shaping checks the settings of a server that apply to all its tools: filters, names, options and transforms.
func (k *checker) shaping(p string, s servers.Config) {
	k.globs(p+".include", s.Include)
	k.globs(p+".exclude", s.Exclude)
	if k.renamed == nil {
		k.renamed = k.c.renamingTools()
	}
	k.condition(p+".where", s.Where, namesOf(strings.TrimPrefix(p, "servers."), s, k.renamed))
	k.placeholders(p+".naming.template", s.Naming.Template, "{server}", "{tool}")
	if t := s.Naming.Template; t != "" && !strings.Contains(t, "{tool}") {
		k.bad(p+".naming.template", "write {tool} where the tool's own name stands",
			"every tool would have the same name")
	}
	if r := s.Naming.Replace; r != nil && strings.Trim(*r, nameCharacters) != "" {
		k.bad(p+".naming.replace", "characters: A-Z a-z 0-9 _ -", "providers refuse names with '%s'", *r)
	}
	if a := s.Naming.Allow; strings.Trim(a, nameCharacters) != "" {
		k.bad(p+".naming.allow", "characters: A-Z a-z 0-9 _ -", "providers refuse names with '%s'",
			strings.Trim(a, nameCharacters))
	} else if r := reversed(a); r != "" {
		k.bad(p+".naming.allow", "write it the other way round", "'%s' is a range without characters", r)
	}
	k.options(p+".provider_options", s.ProviderOptions)
	for i, t := range s.Transform {
		k.transform(tree.Index(p+".transform", i), t)
	}
}

const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

func (k *checker) transform(p string, t catalog.Transform) {
	n := k.nodes[p]
	if n == nil || n.Kind != tree.Map {
		if n != nil && n.IsNull() {
			k.bad(p, "steps: prefix, describe, rename, hide_params, set_params", "has no step")
		}
		return
	}
	switch {
	case t.Func != nil && len(n.Keys) == 0:
		return
	case t.Func != nil || k.typed && len(n.Keys) != 1:
		k.bad(p, "write one element of Transform for each step, in their order", "a step has exactly one of prefix, "+
			"describe, rename, hide_params, set_params and Func")
		return
	case len(n.Keys) != 1:
		k.bad(p, "write one entry of the list for each step, in their order",
			"one step has one of prefix, describe, rename, hide_params and set_params")
		return
	}
	key := n.Keys[0].Val
	if v := n.Vals[0]; v.IsNull() || v.Kind != tree.Scalar && len(v.Vals) == 0 || v.Kind == tree.Scalar && v.Val == "" {
		k.bad(p+"."+key, "", "does nothing")
	}
	k.placeholders(p+".describe", t.Describe, "{description}", "{title}", "{tool}", "{server}")
	for old, name := range t.Rename {
		if name == "" {
			k.bad(p+".rename."+old, "", "a tool needs a name")
		}
	}
}

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[A-Za-z_]*\}`) })

func (k *checker) placeholders(p, template string, known ...string) {
	for _, found := range placeholder().FindAllString(template, -1) {
		if !slices.Contains(known, found) {
			k.bad(p, "placeholders: "+strings.Join(known, ", "), "no such placeholder %s", found)
		}
	}
}

// condition compiles a CEL condition about a tool. differ is the reason why exposed and remote names can differ, or
// "".
func (k *checker) condition(p, text, differ string) {
	if !k.has(p) || k.nodes[p].Tag != "!!str" {
		return
	}
	l, err := policy.NewToolLanguage()
	var c *policy.Condition
	if err == nil {
		c, err = l.Condition(text)
	}
	if err != nil {
		k.bad(p, "CEL over tool (server, identity, remote_name, exposed, kind, title, description, groups, "+
			"annotations) and server (host, command, args)", "%s", err)
	}
	k.ambiguous(p, c, differ)
}

func (k *checker) options(p string, options map[string]json.RawMessage) {
	for _, name := range k.order[p] {
		switch {
		case !slices.Contains(catalog.OptionProviders(), name):
			k.Add(k.keyed[p+"."+name], p+"."+name, fmt.Sprintf("no provider '%s'", name),
				"providers: "+strings.Join(catalog.OptionProviders(), ", "))
		case len(options[name]) > 0 && options[name][0] != '{':
			k.bad(p+"."+name, "", "must be a map of options")
		default:
			if _, err := catalog.NormalOptions(map[string]json.RawMessage{name: options[name]}); err != nil {
				k.bad(p+"."+name, "", "%s", strings.TrimPrefix(err.Error(), "provider_options."))
				return
			}
		}
	}
	if _, err := catalog.NormalOptions(options); err != nil && !k.failedUnder(p) {
		k.bad(p, "", "%s", err)
	}
}

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`) })

// tool checks an entry of tools.
func (k *checker) tool(p, name string, t catalog.Tool) {
	if !toolName().MatchString(name) {
		k.Add(k.keyed[p], p, "providers refuse this name", "a tool's name has the characters A-Z a-z 0-9 _ - and "+
			"begins with a letter or _")
	}
	k.options(p+".provider_options", t.ProviderOptions)
	if k.has(p+".schema") && k.has(p+".arguments") {
		k.bad(p+".schema", "keep one of them", "'arguments' and 'schema' together")
	}
	if k.has(p + ".schema") {
		if err := catalog.CheckSchema(t.Schema); err != nil {
			k.bad(p+".schema", "", "not the JSON Schema of an object: %s", err)
		}
	}
	switch said := k.has(p+".schema") || t.DescribesArguments(); {
	case k.has(p+".arguments_mode") && !said:
		k.bad(p+".arguments_mode", "a tool without arguments has arguments: [] and replace",
			"has no effect without 'arguments' or 'schema'")
	case !said && len(t.Schema) == 0 && t.Server != "" && !k.c.Servers[t.Server].LoadsTools():
		k.note(p, "write arguments, or load_tools: true", "the server's tools are not discovered and no arguments "+
			"are given: the tool takes any")
	}
	var seen []string
	for i, a := range t.Arguments {
		at := tree.Index(p+".arguments", i)
		switch {
		case a.Name == "" && !k.failedUnder(at):
			k.bad(at, "", "'name' is required")
		case slices.Contains(seen, a.Name) && a.Name != "":
			k.bad(at+".name", "", "a second argument '%s'", a.Name)
		case a.Name != tenon.Visible(a.Name):
			k.bad(at+".name", "", "hidden characters in a name")
		}
		if !k.has(at + ".type") {
			a.Type = "" // the server's type
		}
		if why := a.Contradiction(); why != "" {
			k.note(at, "", "the argument '%s' contradicts itself: %s", a.Name, why)
		}
		seen = append(seen, a.Name)
	}
}
