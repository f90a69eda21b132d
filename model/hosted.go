package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// HostedServer is the value of tool.server in rules for the provider's own tools.
const HostedServer = "provider"

// The bounds of models.NAME.tools.
const (
	maxHosted      = 32
	maxHostedBytes = 64 << 10
)

// hostedTool is a tool of providers for which tenon has one name on all wires.
type hostedTool struct {
	name, description string
	// forms maps wires to the declarations of the tool. Settings of the configuration's entry are merged into the
	// object at path.
	forms map[string]hostedForm
}

type hostedForm struct {
	declaration string
	path        string // path of the object for settings; "" is the declaration
	beta        string // value of the header anthropic-beta; may be empty
}

// hostedTools is the table of the providers' tools. Sources: the request types of anthropic-sdk-go, openai-go and
// go-genai; the documentation of OpenRouter's server tools and of system tools in Amazon Nova's user guide.
var hostedTools = [...]hostedTool{
	{"web_search", "searches the web", map[string]hostedForm{
		WireChat:      {declaration: `{"type":"openrouter:web_search"}`},
		WireResponses: {declaration: `{"type":"web_search"}`},
		WireAnthropic: {declaration: `{"type":"web_search_20250305","name":"web_search"}`},
		WireGemini:    {declaration: `{"googleSearch":{}}`, path: "googleSearch"},
		WireBedrock:   {declaration: `{"systemTool":{"name":"nova_grounding"}}`, path: "systemTool"}}},
	{"web_fetch", "reads pages of the web", map[string]hostedForm{
		WireChat:      {declaration: `{"type":"openrouter:web_fetch"}`},
		WireAnthropic: {declaration: `{"type":"web_fetch_20250910","name":"web_fetch"}`, beta: "web-fetch-2025-09-10"},
		WireGemini:    {declaration: `{"urlContext":{}}`, path: "urlContext"}}},
	{"file_search", "searches files that the provider stores", map[string]hostedForm{
		WireResponses: {declaration: `{"type":"file_search"}`},
		WireGemini:    {declaration: `{"fileSearch":{}}`, path: "fileSearch"}}},
	{"code_execution", "runs code on machines of the provider", map[string]hostedForm{
		WireResponses: {declaration: `{"type":"code_interpreter","container":{"type":"auto"}}`},
		WireAnthropic: {declaration: `{"type":"code_execution_20250825","name":"code_execution"}`,
			beta: "code-execution-2025-08-25"},
		WireGemini:  {declaration: `{"codeExecution":{}}`, path: "codeExecution"},
		WireBedrock: {declaration: `{"systemTool":{"name":"nova_code_interpreter"}}`, path: "systemTool"}}},
	{"image_generation", "generates images", map[string]hostedForm{
		WireChat:      {declaration: `{"type":"openrouter:image_generation"}`},
		WireResponses: {declaration: `{"type":"image_generation"}`}}},
}

// HostedForms returns the names of the tools in the table, and their declarations by name and wire.
func HostedForms() (names []string, forms map[string]map[string]string) {
	forms = map[string]map[string]string{}
	for _, t := range hostedTools {
		names, forms[t.name] = append(names, t.name), map[string]string{}
		for wire, f := range t.forms {
			forms[t.name][wire] = f.declaration
		}
	}
	return names, forms
}

// hostedForm returns the declaration of an entry of models.NAME.tools on the wire of the model. If the entry has a
// type, or a name that tenon does not know, the entry itself is the declaration.
func (c Config) hostedForm(name string, entry json.RawMessage) (form hostedForm, known bool, err error) {
	wire := c.Wire()
	own := rawjson.Field(entry, "type") != nil
	if wire == WireScript {
		return hostedForm{declaration: "{}"}, slices.ContainsFunc(hostedTools[:], func(t hostedTool) bool {
			return t.name == name
		}), nil
	}
	for _, t := range hostedTools {
		if t.name != name || own {
			continue
		}
		form, ok := t.forms[wire]
		if !ok || !c.runs(name) {
			return form, true, fmt.Errorf("tenon knows no form of '%s' for this API; give the entry a type, which is "+
				"sent as it is, or use `extra`", name)
		}
		return form, true, nil
	}
	if len(entry) < 3 {
		return form, false, fmt.Errorf("'%s' is no tool that tenon knows; the entry needs the provider's declaration",
			name)
	}
	return hostedForm{declaration: "{}"}, false, nil
}

// runs reports whether the service of the model offers a tool. The wire may have a declaration for it although the
// service does not offer it.
func (c Config) runs(tool string) bool {
	switch c.Wire() {
	case WireChat:
		return c.Provider == "openrouter"
	case WireBedrock: // only Amazon's own models have system tools
		return strings.Contains(c.Model, "amazon.nova")
	case WireAnthropic:
		return c.Provider != providerVertex || tool == "web_search"
	}
	return true
}

// checkHosted checks models.NAME.tools.
func (c Config) checkHosted() error {
	if len(c.Tools) == 0 {
		return nil
	}
	if c.Wire() == WireOllama {
		return errors.New("the API of Ollama has no tools of the provider")
	}
	if len(c.Tools) > maxHostedBytes {
		return fmt.Errorf("it has more than %d KiB", maxHostedBytes>>10)
	}
	if !json.Valid(c.Tools) || !rawjson.IsObject(c.Tools) {
		return errors.New("it is not a map")
	}
	n := 0
	for k, v := range rawjson.Members(c.Tools) {
		if n++; n > maxHosted {
			return fmt.Errorf("it has more than %d entries", maxHosted)
		}
		if !rawjson.IsObject(v) {
			return fmt.Errorf("'%s' is not a map of settings; {} has none", k)
		}
		if err := c.checkEntry(string(k), v); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry checks an entry of models.NAME.tools.
func (c Config) checkEntry(name string, entry json.RawMessage) error {
	conn, ok, err := readConnector(name, entry)
	switch {
	case err != nil:
		return err
	case ok:
		return c.checkConnector(conn)
	}
	_, _, err = c.hostedForm(name, entry)
	return err
}

// WithTools returns the config with the tools of an agent (agents.NAME.provider_tools) in addition to its own. They
// replace tools of the same name. missing names the agent's tools that the API does not have.
func (c Config) WithTools(own json.RawMessage) (merged Config, missing []string) {
	if len(own) == 0 {
		return c, nil
	}
	list := []byte{'{'}
	add := func(name, entry []byte) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(append(rawjson.AppendString(list, string(name)), ':'), entry...)
	}
	for k, v := range rawjson.Members(c.Tools) {
		if memberOf(own, k) == nil {
			add(k, v)
		}
	}
	for k, v := range rawjson.Members(own) {
		if c.Wire() == WireOllama || c.checkEntry(string(k), v) != nil {
			missing = append(missing, string(k))
			continue
		}
		add(k, v)
	}
	c.Tools = nil // an API without tools of the provider refuses an empty list, too
	if len(list) > 1 {
		c.Tools = append(list, '}')
	}
	return c, missing
}

// CheckTools checks the provider's tools of an agent that uses the model. An unknown model has no provider.
func (c Config) CheckTools(own json.RawMessage) error {
	if c.Provider == "" {
		c.Provider = providerScript // has every tool, so that only the form of the entries is checked
	}
	of := c
	of.Tools = own
	if err := of.checkHosted(); err != nil || len(own) == 0 {
		return err
	}
	merged, _ := c.WithTools(own)
	n := 0
	for range rawjson.Members(merged.Tools) {
		n++
	}
	if n > maxHosted || len(merged.Tools) > maxHostedBytes {
		return fmt.Errorf("with the tools of the model, it has more than %d entries or %d KiB", maxHosted,
			maxHostedBytes>>10)
	}
	return nil
}

// Hosted returns the provider's tools of the entry as the rules see them: as tools of server [HostedServer], sorted by
// name, and then the tools that members of [Config.Extra] switch on. The tools that tenon knows change nothing outside
// of the provider, so they are read-only for the rules.
func (c Config) Hosted() []tenon.Tool {
	entries := map[string]json.RawMessage{}
	for k, v := range rawjson.Members(c.Tools) {
		entries[string(k)] = v
	}
	var list []tenon.Tool
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		t := tenon.Tool{Name: name, Server: HostedServer, Remote: name, Description: "a tool of the model's provider"}
		if conn, ok, err := readConnector(name, entries[name]); ok && err == nil {
			t.Description = "the MCP server " + publicURL(conn.url) + ", which the model's provider calls"
		} else if _, known, err := c.hostedForm(name, entries[name]); known && err == nil {
			yes := true
			t.Annotations.ReadOnly = &yes
		}
		list = append(list, t)
	}
	for _, name := range c.SwitchedOn() {
		if slices.ContainsFunc(list, func(t tenon.Tool) bool { return t.Name == name }) {
			continue
		}
		t := tenon.Tool{Name: name, Server: HostedServer, Remote: name, Description: "a tool of the model's provider"}
		if name == "web_search" || name == "file_search" {
			yes := true
			t.Annotations.ReadOnly = &yes
		}
		list = append(list, t)
	}
	return list
}

// AppendHosted appends the declarations of the provider's tools that a request may use, with a comma before each.
func (c Config) AppendHosted(dst []byte, req *tenon.Request) []byte {
	if len(req.Hosted) == 0 || c.ToolMode == ToolsNone || req.ToolChoice == "none" {
		return dst
	}
	for name, v := range rawjson.Members(c.Tools) {
		if !slices.Contains(req.Hosted, string(name)) {
			continue
		}
		if conn, ok, err := readConnector(string(name), json.RawMessage(v)); ok && err == nil {
			dst = c.appendConnector(append(dst, ','), conn)
			continue
		}
		form, _, err := c.hostedForm(string(name), json.RawMessage(v))
		if err != nil {
			continue // not reached: the configuration was checked
		}
		settings := json.RawMessage(v)
		if form.path != "" {
			settings = at(form.path, v)
		}
		dst = mergeObjects(append(dst, ','), []byte(form.declaration), settings)
	}
	return dst
}

// Betas returns the values of the header anthropic-beta that a request needs for the provider's tools and for ids of
// files.
func (c Config) Betas(req *tenon.Request) []string {
	var list []string
	if c.Wire() == WireAnthropic && hasFileID(req) {
		list = append(list, filesBeta)
	}
	for name, v := range rawjson.Members(c.Tools) {
		if !slices.Contains(req.Hosted, string(name)) {
			continue
		}
		beta := ""
		if _, ok, _ := readConnector(string(name), json.RawMessage(v)); ok {
			beta = connectorBeta
		} else if form, _, err := c.hostedForm(string(name), json.RawMessage(v)); err == nil {
			beta = form.beta
		}
		if beta != "" && !slices.Contains(list, beta) {
			list = append(list, beta)
		}
	}
	return list
}

// maxUse bounds the description of a use of a provider's tool, in characters.
const maxUse = 300

// Use describes one use of a provider's tool in a line for a person. It contains the name of the tool and its input.
func Use(name string, input []byte) string {
	text := string(input)
	if s := rawjson.StringBody(input); s != nil {
		text = rawjson.String(input)
	}
	if text == "{}" || text == "null" {
		text = ""
	}
	return tenon.Shorten(tenon.Visible(name+" "+text), maxUse)
}
