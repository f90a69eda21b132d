package eval

import (
	"cmp"
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

// Suite is an evaluation file. The comments on the fields are the user documentation
// (docs/reference/eval.md).
type Suite struct {
	// Displayed name. The default is the name of the file.
	Name string `yaml:"name"`
	// Path of the configuration, relative to the file. The default is the configuration that is
	// found.
	Config string `yaml:"config"`
	// Default agent and model of the cases.
	Agent string `yaml:"agent"`
	Model string `yaml:"model"`
	// Attempts at each case.
	Repeat int `yaml:"repeat" min:"1" max:"1000" default:"1"`
	// Number of concurrent attempts.
	Concurrency int `yaml:"concurrency" min:"1" max:"64" default:"4"`
	// Time limit of an attempt.
	Timeout time.Duration `yaml:"timeout" default:"2m"`
	// Share of the attempts at a case that must pass, 0 to 1.
	Pass *float64 `yaml:"pass" min:"0" max:"1" default:"1"`
	// real: a call without a matching mock goes to its server. mocked: it fails the attempt.
	Tools string `yaml:"tools" enum:"real,mocked" default:"real"`
	// Mocks for all cases.
	Mocks []Mock `yaml:"mocks"`
	// The cases.
	Cases []Case `yaml:"cases"`

	path  string
	agent bool // the file is a HoloDeck agent
}

// IsAgent reports whether the file is a HoloDeck agent with its test cases. It is its own configuration then.
func (s *Suite) IsAgent() bool { return s.agent }

// Case is a question and the expected result.
type Case struct {
	// Name, unique in the file. The default is "case N".
	Name string `yaml:"name"`
	// The question.
	Question string `yaml:"question"`
	// Files of the question, in the folder of the evaluation file or below it.
	Files []string `yaml:"files"`
	// These override the values of the suite.
	Agent  string   `yaml:"agent"`
	Model  string   `yaml:"model"`
	Repeat int      `yaml:"repeat" min:"1" max:"1000"`
	Pass   *float64 `yaml:"pass" min:"0" max:"1"`
	Tools  string   `yaml:"tools" enum:"real,mocked"`
	// native or react, and auto, any, none or the name of a tool.
	Mode       string `yaml:"mode" enum:"native,react"`
	ToolChoice string `yaml:"tool_choice"`
	// Mocks that take precedence over the mocks of the suite.
	Mocks []Mock `yaml:"mocks"`
	// The expected result.
	Expect Expect `yaml:"expect"`

	unused []string // keys of a HoloDeck agent's test case that are not checked
}

// Mock answers calls of a tool. The first matching mock answers a call; the mocks of the case come
// before the mocks of the suite.
type Mock struct {
	// The tool's name on its server, and the server if the name is ambiguous.
	Tool   string `yaml:"tool"`
	Server string `yaml:"server"`
	// The arguments must contain at least this (docs: matching). If absent, any arguments match.
	Arguments json.RawMessage `yaml:"arguments"`
	// The answer: a text, a value (structured content), or an error of the tool.
	Text       *string         `yaml:"text"`
	Structured json.RawMessage `yaml:"structured"`
	Error      *string         `yaml:"error"`
	// Delay before the answer.
	Delay time.Duration `yaml:"delay"`
	// Number of calls that the mock answers; 0 means all.
	Times int `yaml:"times" min:"0"`
	// If one of these is set, the mock itself offers the tool, on server "mock".
	Description string          `yaml:"description"`
	InputSchema json.RawMessage `yaml:"input_schema"`
}

// Expect is the expected result of a run.
type Expect struct {
	// Tool calls. [] means no calls. If absent, any calls match.
	Calls *[]Call `yaml:"calls"`
	// exact: exactly these calls in this order. ordered: in this order, with other calls between
	// them. set: exactly these calls in any order. any: at least these calls in any order.
	Order string `yaml:"order" enum:"exact,ordered,set,any" default:"exact"`
	// Texts that must occur, ignoring case, in the results of tools of servers with is_retrieval.
	Context []string `yaml:"context"`
	// The expected answer.
	Answer Answer `yaml:"answer"`
	// Stop reason of the run, such as stop or limit_turns.
	StopReason string `yaml:"stop_reason" enum:"stop,max_tokens,context_full,content_filter,bad_call,error,cancelled,limit_turns,limit_tool_calls,limit_tokens,limit_cost,limit_time" default:"stop"`
	// Tools of a HoloDeck agent that the run must call.
	used []usedTool
	// Limits of the run; 0 means no limit.
	MaxTurns  int           `yaml:"max_turns" min:"0"`
	MaxTokens int           `yaml:"max_tokens" min:"0"`
	MaxCost   float64       `yaml:"max_cost" min:"0"`
	MaxTime   time.Duration `yaml:"max_time"`
}

// Call is an expected tool call.
type Call struct {
	// Name of the tool for the model, or its name on the server.
	Tool   string `yaml:"tool"`
	Server string `yaml:"server"`
	// The arguments must contain at least this. If absent, any arguments match.
	Arguments json.RawMessage `yaml:"arguments"`
	// The arguments must contain nothing else.
	Exact bool `yaml:"exact"`
	// Outcome of the call: result, denied, invalid, failed, unknown. If absent, the call must have reached the
	// tool: result (also an error of the tool) or unknown.
	Outcome string `yaml:"outcome" enum:"result,denied,invalid,failed,unknown"`
}

// Answer is the expected last text of a run.
type Answer struct {
	// The complete text, without surrounding white space.
	Equals *string `yaml:"equals"`
	// Texts that must occur, and texts that must not occur, ignoring case.
	Contains    []string `yaml:"contains"`
	NotContains []string `yaml:"not_contains"`
	// Regular expression (RE2) that matches a part of the text.
	Regex string `yaml:"regex"`
	// The answer is JSON that is valid against a schema, inline or in a file.
	Schema     json.RawMessage `yaml:"schema"`
	SchemaFile string          `yaml:"schema_file"`
	// The answer is JSON that contains at least this.
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
	maxRepeat          = 1000 // the same limit as in the tags of Repeat
)

// Load reads an evaluation file, or the test cases of a HoloDeck agent. Errors: not_found, and [config.Errors] with
// file, line and column of every mistake.
func Load(path string) (*Suite, error) {
	if s, err := loadAgent(path); s != nil || err != nil {
		return s, err
	}
	s := &Suite{path: path}
	doc, err := config.ReadDocument(path, s)
	if err != nil {
		return nil, err
	}
	return s, s.check(doc)
}

// check reports mistakes that decoding cannot detect, compiles expressions and schemas, and sets
// defaults.
func (s *Suite) check(doc *config.Document) error {
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(s.path), filepath.Ext(s.path))
	}
	if s.Config != "" && !filepath.IsAbs(s.Config) {
		s.Config = filepath.Join(doc.Dir, s.Config)
	}
	s.Model = scriptBeside(s.Model, doc.Dir)
	s.Repeat, s.Concurrency = max(s.Repeat, 1), max(s.Concurrency, 0)
	s.Concurrency = cmp.Or(s.Concurrency, DefaultConcurrency)
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	if len(s.Cases) == 0 {
		doc.Add("cases", "there are no cases", "a case has a question and the expected result")
	}
	list := "cases"
	if s.agent {
		list = "test_cases"
	}
	if len(s.Cases) > maxCases {
		doc.Add(list, fmt.Sprintf("there are more than %d cases", maxCases), "")
		return doc.Err()
	}
	checkMocks(doc, "mocks", s.Mocks)
	names := map[string]int{}
	attempts := 0
	for i := range s.Cases {
		c, at := &s.Cases[i], fmt.Sprintf("%s[%d]", list, i)
		if c.Name == "" {
			c.Name = fmt.Sprintf("case %d", i+1)
		}
		if first, ok := names[slug(c.Name)]; ok {
			doc.Add(at+".name", fmt.Sprintf("case %d has the same name, or a name for the same folder", first+1),
				"names identify results and cassettes")
		}
		names[slug(c.Name)] = i
		if strings.TrimSpace(c.Question) == "" {
			doc.Add(at+".question", "there is no question", "")
		}
		c.fill(s, doc.Dir)
		c.placeFiles(doc, at)
		attempts += c.Repeat
		if attempts > maxAttempts {
			doc.Add(at+".repeat", fmt.Sprintf("there are more than %d attempts in all", maxAttempts), "")
			return doc.Err()
		}
		checkMocks(doc, at+".mocks", c.Mocks)
		c.Expect.check(doc, at+".expect")
	}
	return doc.Err()
}

// fill sets the defaults of the case from the suite.
func (c *Case) fill(s *Suite, dir string) {
	c.Repeat = cmp.Or(c.Repeat, s.Repeat)
	c.Pass = cmp.Or(c.Pass, s.Pass)
	c.Tools = cmp.Or(c.Tools, s.Tools)
	c.Agent = cmp.Or(c.Agent, s.Agent)
	c.Model = cmp.Or(scriptBeside(c.Model, dir), s.Model)
}

// placeFiles makes the paths of the files absolute. A file outside of the folder is a mistake: its content would go to
// a model.
func (c *Case) placeFiles(doc *config.Document, at string) {
	for i, f := range c.Files {
		at := fmt.Sprintf("%s.files[%d]", at, i)
		path := filepath.Join(doc.Dir, f)
		folder, err := filepath.EvalSymlinks(doc.Dir)
		real := path
		if err == nil {
			real, err = filepath.EvalSymlinks(path)
		}
		switch rel, relErr := filepath.Rel(folder, real); {
		case !filepath.IsLocal(f), err == nil && (relErr != nil || !filepath.IsLocal(rel)):
			doc.Add(at, "the file is outside of the folder of the evaluation file", "copy it into the folder")
		case err != nil:
			doc.Add(at, "no file "+f, "")
		}
		c.Files[i] = path
	}
}

// scriptBeside resolves the path of a script relative to the folder of the file that names it.
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
			doc.Add(at, "a mock needs the name of its tool", "")
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
				doc.Add(at+".server", "a mock that offers its tool cannot name another server",
					"remove the key, or description and input_schema")
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
				doc.Add(at, "a call needs the name of the tool", "")
			}
			checkMatcher(doc, at+".arguments", c.Arguments)
		}
	} else if e.Order != "" {
		doc.Add(at+".order", "order needs calls", "")
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
