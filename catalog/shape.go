package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// Source is the input of [Shape]: the tools that one server offers, and the configuration for them. The order of the
// steps:
//
//  1. tools in Blocked, such as ones that have changed since they were pinned, are left out
//  2. include, exclude (on remote names)
//  3. hidden characters in texts are made visible
//  4. the schema becomes the schema of an object
//  5. annotations of a server that is not trusted are dropped; provider options
//     and defer of the server's entry are added
//     (here set_params, hide_params and argument schemas of more trusted layers are applied, and
//     again after 8)
//  6. naming.template gives the name
//  7. transform, entry by entry
//  8. the entry of `tools`: name, title, description, arguments, annotations, rules; provider
//     options get their form
//  9. schema.types
//  10. tools that do not match the condition where are left out
//  11. names become valid and unique among all servers
type Source struct {
	Server    string
	Identity  string        // identity of the server, for Where; empty means its name
	Facts     policy.Server // facts about the server, for Where
	Target    string        // see [tenon.ToolRules]
	About     string        // description of the server, for the search
	Trusted   bool          // the server's annotations are used
	Static    bool          // only Entries define its tools; Tools is empty
	Include   []string      // globs on remote names; empty means all
	Exclude   []string      // globs; Exclude overrides Include
	Where     *policy.Condition
	Floors    []Filter // filters of more trusted layers; a tool must pass each
	Naming    Naming
	Transform []Transform
	Simple    bool // parameters must be strings, integers or numbers
	Formats   bool // the keyword format is an assertion
	Options   map[string]json.RawMessage
	Defer     *bool           // a model has to search its tools; if nil, the size of all tools decides
	Entries   map[string]Tool // entries of `tools` about this server, by exposed name
	Tools     []tenon.Tool
	// Named reports that [tenon.Tool.Name] is the name that the program gave to the tool.
	Named bool
	// Joined is 0 for a server that a program had at its start. The servers that join later count from 1. In a name
	// clash, tools of servers that joined later get another name, and the other tools keep theirs.
	Joined int
	// Blocked maps remote names of tools to the reason why they are left out: nobody has accepted their present
	// definition. The name "" means all tools.
	Blocked map[string]string
	// Fresh maps remote names of tools that are new since the server was pinned to the digests of their definitions.
	Fresh map[string]string

	gone bool // the server was removed; its tools only keep their names
}

// Filter is the choice of a server's tools in a more trusted layer. The include, exclude and where of a project can
// only restrict it.
type Filter struct {
	By      string   // the layer, in a text for people
	Include []string // globs on remote names; empty means all
	Exclude []string // globs; Exclude overrides Include
	Where   *policy.Condition
	// Transform has only steps with set_params and hide_params. No later step can set these parameters, or show them
	// to the model.
	Transform []Transform
	// Entries describes the arguments of tools, by remote name. A call has to fit these descriptions, too.
	Entries map[string]Tool
}

// Withheld is a tool that is not offered, with the reason.
type Withheld struct {
	Server string `json:"server"`
	Remote string `json:"remote_name"`
	Reason string `json:"reason"`
}

// Step is a change of a tool by one step of shaping.
type Step struct {
	Step   string `json:"step"`   // such as transform[0].prefix
	Field  string `json:"field"`  // name, title, description, input_schema, annotations, rules, arguments
	Before string `json:"before"` // as text; JSON for what is not a text
	After  string `json:"after"`
}

// Listing is the shaped tools of one server. It is immutable.
type Listing struct {
	source   Source
	items    []*item    // sorted with before
	withheld []Withheld // sorted with byIdentity
	problems []error
}

// Shape shapes the tools that one server offers. It has no side effects. Of the slices and maps of the source it
// keeps only the ones within tools.
func Shape(src Source) *Listing {
	s := &Listing{source: src}
	byRemote := make(map[string]string, len(src.Entries)) // remote name → name of the entry
	for name, e := range src.Entries {
		byRemote[e.RemoteName] = name
	}
	offered := src.Tools
	if src.Static {
		offered = nil
		for _, name := range slices.Sorted(maps.Keys(src.Entries)) {
			e := src.Entries[name]
			offered = append(offered, e.builtin())
		}
	}
	used := map[string]bool{}
	seen := make(map[string]bool, len(byRemote))
	var unusable []Withheld
	for _, done := range s.source.shapeAll(offered, byRemote) {
		s.items, s.withheld, s.problems = append(s.items, done.items...), append(s.withheld, done.withheld...),
			append(s.problems, done.problems...)
		unusable = append(unusable, done.unusable...)
		maps.Copy(used, done.used)
		maps.Copy(seen, done.seen)
	}
	if len(unusable) > 0 {
		s.problems = append(s.problems, unusableError(src.Server, unusable))
	}
	slices.SortStableFunc(s.items, before)
	slices.SortStableFunc(s.withheld, byIdentity)
	for _, name := range slices.Sorted(maps.Keys(src.Entries)) {
		if !seen[name] {
			s.problems = append(s.problems, tenon.Errorf(tenon.CodeConfig, "tools.%s: server '%s' has no tool '%s'",
				name, src.Server, src.Entries[name].RemoteName))
		}
	}
	if len(offered) > 0 && len(src.Blocked) == 0 {
		s.problems = append(s.problems, src.inert(used)...)
	}
	return s
}

// inert returns an error for each rule that matches no tool.
func (s *Source) inert(used map[string]bool) []error {
	var list []error
	bad := func(key, format string, args ...any) {
		if !used[key] {
			list = append(list, tenon.Errorf(tenon.CodeConfig, "servers.%s.%s: %s", s.Server, key,
				fmt.Sprintf(format, args...)))
		}
	}
	for _, g := range s.Include {
		if g != "*" {
			bad(includeKey(g), "no tool of the server matches '%s'%s", g, literalBraces(g))
		}
	}
	for _, g := range s.Exclude {
		bad(excludeKey(g), "no tool of the server matches '%s'%s", g, literalBraces(g))
	}
	for i, t := range s.Transform {
		for _, old := range slices.Sorted(maps.Keys(t.Rename)) {
			bad(key(i, "rename."+old), "no tool has the name '%s' at this step", old)
		}
		for _, p := range t.HideParams {
			bad(key(i, "hide_params."+p), "no tool has the parameter '%s'", p)
		}
		for _, p := range slices.Sorted(maps.Keys(t.SetParams)) {
			bad(key(i, "set_params."+p), "no tool has the parameter '%s'", p)
		}
	}
	return list
}

func key(i int, rest string) string { return fmt.Sprintf("transform[%d].%s", i, rest) }

func includeKey(glob string) string { return "include '" + glob + "'" }

func excludeKey(glob string) string { return "exclude '" + glob + "'" }

// literalBraces returns a hint about a glob with braces, which only shells expand.
func literalBraces(glob string) string {
	if strings.ContainsAny(glob, "{}") {
		return "; braces have no meaning in a glob: write one entry for each name"
	}
	return ""
}

// explain returns the changes of each step to one tool of the source, in order.
func (s *Listing) explain(remote string) []Step {
	for i := range s.source.Tools {
		if s.source.Tools[i].Remote == remote {
			return s.trace(s.source.Tools[i])
		}
	}
	t := tenon.Tool{Remote: remote}
	for _, e := range s.source.Entries {
		if e.RemoteName == remote {
			t = e.builtin()
		}
	}
	return s.trace(t)
}

func (s *Listing) trace(t tenon.Tool) []Step {
	c := shaper{src: &s.source, used: map[string]bool{}, steps: &[]Step{}}
	for name, e := range s.source.Entries {
		if e.RemoteName == t.Remote {
			c.entry = name
		}
	}
	c.run(&t)
	return *c.steps
}

// shaper shapes one tool after the other.
type shaper struct {
	src      *Source
	used     map[string]bool
	steps    *[]Step         // if nil, steps are not recorded
	entry    string          // name of the tool's entry; empty if there is none
	t        *tenon.Tool     // copy of the tool, which the steps change
	broken   bool            // the tool is left out because the configuration is wrong
	unusable bool            // the tool is left out because its schema cannot be used
	floor    tenon.ToolRules // parameters that more trusted layers set and hide, and their schemas
}

// run shapes a tool in place. It returns the reason why the tool is left out, or "". There may be ten thousand tools,
// so steps for most of them must not allocate.
func (c *shaper) run(t *tenon.Tool) string {
	c.t, c.broken, c.unusable = t, false, false
	t.Server = c.src.Server
	if !c.src.Named || t.Name == "" {
		t.Name = t.Remote
	}
	for _, s := range [...]struct {
		name string
		do   func(*shaper) string
	}{
		{"kind", (*shaper).kind},
		{"pins", (*shaper).pins},
		{"filter", (*shaper).filter},
		{"text", (*shaper).text},
		{"schema", (*shaper).schema},
		{"server", (*shaper).server},
		{"floors", (*shaper).floors},
		{"naming.template", (*shaper).template},
	} {
		if reason := c.step(s.name, s.do); reason != "" {
			return reason
		}
	}
	original := tenon.OriginalTool{Title: t.Title, Description: t.Description, Annotations: t.Annotations}
	for i := range c.src.Transform {
		if reason := c.transform(i, &c.src.Transform[i]); reason != "" {
			return reason
		}
	}
	if c.entry != "" {
		if reason := c.step("tools."+c.entry, (*shaper).overlay); reason != "" {
			return reason
		}
	}
	if c.hasFloors() {
		if reason := c.step("floors again", (*shaper).floorsAgain); reason != "" {
			return reason
		}
	}
	t.Rules.Original = nil
	if original != (tenon.OriginalTool{Title: t.Title, Description: t.Description, Annotations: t.Annotations}) {
		kept := original // which escapes only here
		t.Rules.Original = &kept
	}
	if len(t.Rules.Options) > 0 {
		if reason := c.step("provider_options", (*shaper).options); reason != "" {
			return reason
		}
	}
	if c.src.Simple {
		if reason := c.step("schema.types", (*shaper).simple); reason != "" {
			return reason
		}
	}
	if reason := c.step("where", (*shaper).where); reason != "" {
		return reason
	}
	if c.entry == "" || !fits(c.t.Name) {
		return c.step("naming", (*shaper).naming)
	}
	return ""
}

// kind leaves out tools of an unknown kind.
func (c *shaper) kind() string {
	if tenon.IsKind(c.t.Kind) {
		return ""
	}
	c.broken = true
	return "Unknown tool type: " + tenon.Visible(c.t.Kind)
}

// step does one step and records its changes.
func (c *shaper) step(name string, do func(*shaper) string) string {
	if c.steps == nil {
		return do(c)
	}
	before := *c.t
	reason := do(c)
	note := func(field, a, b string) {
		if a != b {
			*c.steps = append(*c.steps, Step{name, field, a, b})
		}
	}
	note("name", before.Name, c.t.Name)
	note("title", before.Title, c.t.Title)
	note("description", before.Description, c.t.Description)
	note("input_schema", string(before.Input), string(c.t.Input))
	note("annotations", string(encode(before.Annotations)), string(encode(c.t.Annotations)))
	note("rules", string(encode(before.Rules)), string(encode(c.t.Rules)))
	if reason != "" {
		*c.steps = append(*c.steps, Step{name, "offered", "yes", "no: " + reason})
	}
	return reason
}

func (c *shaper) pins() string { return cmp.Or(c.src.Blocked[c.t.Remote], c.src.Blocked[""]) }

func (c *shaper) filter() string {
	excluded := ""
	for _, g := range c.src.Exclude { // check every glob, to find globs that match nothing
		if glob(g, c.t.Remote) {
			c.used[excludeKey(g)], excluded = true, cmp.Or(excluded, g)
		}
	}
	if len(c.src.Include) > 0 {
		hit := false
		for _, g := range c.src.Include {
			if glob(g, c.t.Remote) {
				c.used[includeKey(g)], hit = true, true
			}
		}
		if !hit {
			return "include: no glob matches the name: " + strings.Join(c.src.Include, ", ")
		}
	}
	if excluded != "" {
		return "exclude: " + excluded
	}
	for i := range c.src.Floors {
		f := &c.src.Floors[i]
		if len(f.Include) > 0 && !Match(f.Include, c.t.Remote) {
			return "include of " + f.By + ": no glob matches the name: " + strings.Join(f.Include, ", ")
		}
		if j := slices.IndexFunc(f.Exclude, func(g string) bool { return glob(g, c.t.Remote) }); j >= 0 {
			return "exclude of " + f.By + ": " + f.Exclude[j]
		}
	}
	return ""
}

// glob matches like path.Match, but * also matches slashes, which tool names may contain.
func glob(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// text makes hidden characters visible in texts for reading. It refuses them in names and values, since the model
// could not send them back.
func (c *shaper) text() string {
	c.t.Title, c.t.Description = tenon.Visible(c.t.Title), tenon.Visible(c.t.Description)
	clean, err := visibleSchema(c.t.Input)
	if err != nil {
		c.broken = c.src.Named // a mistake of the program, and not one of a server
		return err.Error()
	}
	c.t.Input = clean
	return ""
}

func (c *shaper) schema() string {
	input, wrapped, err := objectSchema(withoutAnchors(c.t.Input))
	if err != nil {
		c.broken, c.unusable = c.src.Named, !c.src.Named // of a program and of a server
		return err.Error()
	}
	c.t.Input, c.t.Rules.Wrapped = input, wrapped
	return ""
}

func (c *shaper) server() string {
	if !c.src.Trusted {
		c.t.Annotations = tenon.Annotations{Title: c.t.Annotations.Title} // the title is a text, not a hint
	}
	if !c.src.Named || c.src.Options != nil { // a program may set options on its tools
		c.t.Rules.Options = c.src.Options
	}
	c.t.Rules.Defer, c.t.Rules.New = c.src.Defer, c.src.Fresh[c.t.Remote]
	c.t.Rules.Target, c.t.Rules.Formats = c.src.Target, c.src.Formats
	return ""
}

func (c *shaper) template() string {
	if tmpl := c.src.Naming.Template; tmpl != "" {
		c.t.Name = fill(tmpl, c.t, c.t.Remote)
	}
	return ""
}

func (c *shaper) naming() string {
	if c.t.Name == "" {
		c.broken = true
		return "its name is empty; it needs one that is not empty"
	}
	c.t.Name = c.src.Naming.safe(c.t.Name)
	return ""
}

// fill replaces the placeholders of a template. Placeholders in the inserted texts stay.
func fill(template string, t *tenon.Tool, tool string) string {
	return strings.NewReplacer("{tool}", tool, "{server}", t.Server, "{description}", t.Description, "{title}",
		t.Title).Replace(template)
}

func (c *shaper) where() string {
	if reason := c.holds(c.src.Where, "where", c.t); reason != "" {
		return reason
	}
	for i := range c.src.Floors {
		f := &c.src.Floors[i]
		if f.Where == nil {
			continue
		}
		t := c.t.Original() // without a project's texts and annotations
		if reason := c.holds(f.Where, "where of "+f.By, &t); reason != "" {
			return reason
		}
	}
	return ""
}

// holds returns why a condition leaves a tool out, or "" if it does not.
func (c *shaper) holds(where *policy.Condition, name string, t *tenon.Tool) string {
	if where == nil {
		return ""
	}
	keep, err := where.All(&policy.Facts{Tool: t, Identity: c.src.Identity, Server: c.src.Facts})
	switch {
	case err != nil:
		c.broken = true
		return name + ": " + err.Error()
	case !keep:
		return name + ": " + where.String()
	}
	return ""
}
