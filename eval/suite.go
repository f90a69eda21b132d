package eval

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
)

// The values of [Suite.Tools].
const (
	ToolsReal   = "real"
	ToolsMocked = "mocked"
)

// The values of [Expect.Order].
const (
	OrderExact   = "exact"
	OrderOrdered = "ordered"
	OrderSet     = "set"
	OrderAny     = "any"
)

// Suite is a file of cases. The comments on the fields are the user's documentation
// (docs/reference/eval.md).
type Suite struct {
	// Shown text; default: the file's name.
	Name string `yaml:"name"`
	// The configuration, in place of the one that is found; relative to the file.
	Config string `yaml:"config"`
	// Agent and model of the cases that name none.
	Agent string `yaml:"agent"`
	Model string `yaml:"model"`
	// Attempts at each case.
	Repeat int `yaml:"repeat" min:"1" max:"1000" default:"1"`
	// Attempts at a time.
	Concurrency int `yaml:"concurrency" min:"1" max:"64" default:"4"`
	// Time for one attempt.
	Timeout time.Duration `yaml:"timeout" default:"2m"`
	// Share of the attempts at a case that must pass, 0 to 1.
	Pass *float64 `yaml:"pass" min:"0" max:"1" default:"1"`
	// real: a call that no mock fits goes to its server; mocked: it fails the attempt.
	Tools string `yaml:"tools" enum:"real,mocked" default:"real"`
	// Answers in the place of tools, for all cases.
	Mocks []Mock `yaml:"mocks"`
	// The cases.
	Cases []Case `yaml:"cases"`

	path string
}

// Case is one question and what is expected.
type Case struct {
	// Name, unique in the file; default: case N.
	Name string `yaml:"name"`
	// The question.
	Question string `yaml:"question"`
	// In place of the suite's.
	Agent  string   `yaml:"agent"`
	Model  string   `yaml:"model"`
	Repeat int      `yaml:"repeat" min:"1" max:"1000"`
	Pass   *float64 `yaml:"pass" min:"0" max:"1"`
	Tools  string   `yaml:"tools" enum:"real,mocked"`
	// native or react, and auto, any, none or a tool's name.
	Mode       string `yaml:"mode" enum:"native,react"`
	ToolChoice string `yaml:"tool_choice"`
	// Mocks that stand before those of the suite.
	Mocks []Mock `yaml:"mocks"`
	// What is expected.
	Expect Expect `yaml:"expect"`
}

// Mock answers calls of a tool. The first that fits a call is taken, those of the case
// before those of the suite.
type Mock struct {
	// The tool's name at its server, and the server where the name alone is not enough.
	Tool   string `yaml:"tool"`
	Server string `yaml:"server"`
	// What the arguments must have at least (docs: matching); absent: any.
	Arguments json.RawMessage `yaml:"arguments"`
	// The answer: a text, a value (structured content), or an error that the tool reports.
	Text       *string         `yaml:"text"`
	Structured json.RawMessage `yaml:"structured"`
	Error      *string         `yaml:"error"`
	// Time that passes before the answer.
	Delay time.Duration `yaml:"delay"`
	// How many calls it answers; 0: all.
	Times int `yaml:"times" min:"0"`
	// With them the tool is offered by the mock itself, as one of server "mock".
	Description string          `yaml:"description"`
	InputSchema json.RawMessage `yaml:"input_schema"`
}

// Expect is what a run must come to.
type Expect struct {
	// Tool calls; [] means none at all; absent: any.
	Calls *[]Call `yaml:"calls"`
	// exact: these and no others, in this order; ordered: in this order, others between them; set: these and no others, in any order; any: these, in any order, beside others.
	Order string `yaml:"order" enum:"exact,ordered,set,any" default:"exact"`
	// Texts that occur, in any case of letters, in what tools of servers with is_retrieval gave.
	Context []string `yaml:"context"`
	// The answer.
	Answer Answer `yaml:"answer"`
	// How the run ends: a stop reason such as stop or limit_turns.
	StopReason string `yaml:"stop_reason" enum:"stop,max_tokens,context_full,content_filter,bad_call,error,cancelled,limit_turns,limit_tool_calls,limit_tokens,limit_cost,limit_time" default:"stop"`
	// Bounds of what the run may use; 0: none.
	MaxTurns  int           `yaml:"max_turns" min:"0"`
	MaxTokens int           `yaml:"max_tokens" min:"0"`
	MaxCost   float64       `yaml:"max_cost" min:"0"`
	MaxTime   time.Duration `yaml:"max_time"`
}

// Call is an expected tool call.
type Call struct {
	// The name that the model sees, or that the tool has at its server.
	Tool   string `yaml:"tool"`
	Server string `yaml:"server"`
	// What the arguments must have at least; absent: any.
	Arguments json.RawMessage `yaml:"arguments"`
	// Exact: the arguments must have nothing else.
	Exact bool `yaml:"exact"`
	// How the call must end: result, denied, invalid, failed, unknown; default: any.
	Outcome string `yaml:"outcome" enum:"result,denied,invalid,failed,unknown"`
}

// Answer is what the last text of a run must be.
type Answer struct {
	// The whole text, without white space around it.
	Equals *string `yaml:"equals"`
	// Texts that occur in it, in any case of letters, and texts that do not.
	Contains    []string `yaml:"contains"`
	NotContains []string `yaml:"not_contains"`
	// A regular expression (RE2) that fits a part of it.
	Regex string `yaml:"regex"`
	// It is JSON that fits a schema, in place or in a file.
	Schema     json.RawMessage `yaml:"schema"`
	SchemaFile string          `yaml:"schema_file"`
	// It is JSON that has at least this.
	JSON json.RawMessage `yaml:"json"`

	regex  *regexp.Regexp
	schema *catalog.ValueSchema
}

// The defaults of [Suite].
const (
	DefaultConcurrency = 4
	DefaultTimeout     = 2 * time.Minute
	maxCases           = 10_000
	maxAttempts        = 100_000
)

// Load reads a file of cases. Errors: not_found, and [config.Errors] with file, line
// and column of everything that is wrong.
func Load(path string) (*Suite, error) {
	s := &Suite{path: path}
	doc, err := config.ReadDocument(path, s)
	if err != nil {
		return nil, err
	}
	return s, s.check(doc)
}

// Parse reads the bytes of a file, called name in errors, as [Load] does; relative
// paths in it are relative to dir.
func Parse(name string, data []byte, dir string) (*Suite, error) {
	s := &Suite{path: name}
	doc, err := config.ParseDocument(name, data, dir, s)
	if err != nil {
		return nil, err
	}
	return s, s.check(doc)
}

// check finds what the types do not say, compiles what is compiled, and fills defaults.
func (s *Suite) check(doc *config.Document) error {
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(s.path), filepath.Ext(s.path))
	}
	if s.Config != "" && !filepath.IsAbs(s.Config) {
		s.Config = filepath.Join(doc.Dir, s.Config)
	}
	s.Model = scriptBeside(s.Model, doc.Dir)
	s.Repeat, s.Concurrency = max(s.Repeat, 1), max(s.Concurrency, 0)
	if s.Concurrency == 0 {
		s.Concurrency = DefaultConcurrency
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	if len(s.Cases) == 0 {
		doc.Add("cases", "there are no cases", "a case has a question and what is expected")
	}
	if len(s.Cases) > maxCases {
		doc.Add("cases", fmt.Sprintf("there are more than %d cases", maxCases), "")
		return doc.Err()
	}
	checkMocks(doc, "mocks", s.Mocks)
	names := map[string]int{}
	attempts := 0
	for i := range s.Cases {
		c, at := &s.Cases[i], fmt.Sprintf("cases[%d]", i)
		if c.Name == "" {
			c.Name = fmt.Sprintf("case %d", i+1)
		}
		if first, ok := names[slug(c.Name)]; ok {
			doc.Add(at+".name", fmt.Sprintf("case %d has the same name, or one that makes the same folder", first+1), "names tell results and cassettes apart")
		}
		names[slug(c.Name)] = i
		if strings.TrimSpace(c.Question) == "" {
			doc.Add(at+".question", "there is no question", "")
		}
		c.fill(s, doc.Dir)
		if attempts += c.Repeat; attempts > maxAttempts {
			doc.Add(at+".repeat", fmt.Sprintf("there are more than %d attempts in all", maxAttempts), "")
			return doc.Err()
		}
		checkMocks(doc, at+".mocks", c.Mocks)
		c.Expect.check(doc, at+".expect")
	}
	return doc.Err()
}

// fill puts in what the suite says where the case says nothing.
func (c *Case) fill(s *Suite, dir string) {
	if c.Repeat == 0 {
		c.Repeat = s.Repeat
	}
	if c.Pass == nil {
		c.Pass = s.Pass
	}
	if c.Tools == "" {
		c.Tools = s.Tools
	}
	if c.Agent == "" {
		c.Agent = s.Agent
	}
	if c.Model = scriptBeside(c.Model, dir); c.Model == "" {
		c.Model = s.Model
	}
}

// scriptBeside makes the path of a script relative to the file that names it.
func scriptBeside(model, dir string) string {
	file, ok := strings.CutPrefix(model, "script:")
	if !ok || filepath.IsAbs(file) {
		return model
	}
	return "script:" + filepath.Join(dir, file)
}

func checkMocks(doc *config.Document, at string, mocks []Mock) {
	offered := map[string]bool{}
	for i, m := range mocks {
		at := fmt.Sprintf("%s[%d]", at, i)
		if m.Tool == "" {
			doc.Add(at, "a mock needs the tool that it answers for", "")
		}
		answers := 0
		for _, given := range []bool{m.Text != nil, m.Structured != nil, m.Error != nil} {
			if given {
				answers++
			}
		}
		if answers != 1 && (m.Text == nil || m.Structured == nil || m.Error != nil) {
			doc.Add(at, "a mock has one answer: text, structured (or both), or error", "")
		}
		checkMatcher(doc, at+".arguments", m.Arguments)
		if m.InputSchema != nil || m.Description != "" {
			if m.Server != "" && m.Server != mockServer {
				doc.Add(at+".server", "a tool that the mock offers itself is of no other server", "remove the key, or description and input_schema")
			}
			if offered[m.Tool] {
				doc.Add(at, "the tool is described twice", "describe it in its first mock")
			}
			offered[m.Tool] = true
		}
		if m.InputSchema != nil {
			if err := catalog.CheckSchema(m.InputSchema); err != nil {
				doc.Add(at+".input_schema", err.Error(), "")
			}
		}
	}
}

func (e *Expect) check(doc *config.Document, at string) {
	if e.Calls != nil {
		for i, c := range *e.Calls {
			at := fmt.Sprintf("%s.calls[%d]", at, i)
			if c.Tool == "" {
				doc.Add(at, "a call needs the tool", "")
			}
			checkMatcher(doc, at+".arguments", c.Arguments)
		}
	} else if e.Order != "" {
		doc.Add(at+".order", "there is no order without calls", "")
	}
	a := &e.Answer
	if a.Regex != "" {
		var err error
		if a.regex, err = regexp.Compile(a.Regex); err != nil {
			doc.Add(at+".answer.regex", err.Error(), "")
		}
	}
	checkMatcher(doc, at+".answer.json", a.JSON)
	a.readSchema(doc, at+".answer")
}

func (a *Answer) readSchema(doc *config.Document, at string) {
	raw, at := a.Schema, at+".schema"
	if a.SchemaFile != "" {
		if raw != nil {
			doc.Add(at, "schema and schema_file exclude each other", "")
			return
		}
		at += "_file"
		path := a.SchemaFile
		if !filepath.IsAbs(path) {
			path = filepath.Join(doc.Dir, path)
		}
		var err error
		if raw, err = config.ReadSchema(path); err != nil {
			doc.Add(at, err.Error(), "")
			return
		}
	}
	if raw == nil {
		return
	}
	var err error
	if a.schema, err = catalog.NewValueSchema(raw); err != nil {
		doc.Add(at, err.Error(), "")
	}
}
