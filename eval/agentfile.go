package eval

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/view"
)

// maxTestCases is the maximum number of test cases of an agent.yaml.
const maxTestCases = 1000

// agentFile is the part of a HoloDeck agent that tenon eval reads.
type agentFile struct {
	TestCases []testCase `yaml:"test_cases"`
}

// testCase is a test case of a HoloDeck agent.
type testCase struct {
	Name          string          `yaml:"name"`
	Input         string          `yaml:"input"`
	ExpectedTools json.RawMessage `yaml:"expected_tools"`
	GroundTruth   string          `yaml:"ground_truth"`
	Files         []testFile      `yaml:"files"`
	Evaluations   json.RawMessage `yaml:"evaluations"`
	Context       json.RawMessage `yaml:"retrieval_context"`
	Turns         json.RawMessage `yaml:"turns"`
}

// testFile is a file of a test case.
type testFile struct {
	Path        string          `yaml:"path"`
	URL         string          `yaml:"url"`
	Type        string          `yaml:"type"`
	Description string          `yaml:"description"`
	Pages       json.RawMessage `yaml:"pages"`
	Sheet       string          `yaml:"sheet"`
	Range       string          `yaml:"range"`
	Cache       *bool           `yaml:"cache"`
}

// usedTool is an element of expected_tools: the name, or name, args and count.
type usedTool struct {
	Name  string          `json:"name"`
	Args  json.RawMessage `json:"args"`
	Count int             `json:"count"`

	args json.RawMessage // Args with the matchers of this package
}

// loadAgent reads the test cases of a HoloDeck agent. It returns nil if the file does not describe an agent.
func loadAgent(path string) (*Suite, error) {
	var f agentFile
	doc, err := config.ReadTestCases(path, &f)
	if doc == nil || err != nil {
		return nil, err
	}
	s := &Suite{path: path, agent: true}
	if len(f.TestCases) == 0 {
		doc.Add("test_cases", "the agent has no test cases", "a test case has an input, and expected_tools")
		return nil, doc.Err()
	}
	if len(f.TestCases) > maxTestCases {
		doc.Add("test_cases", fmt.Sprintf("there are more than %d test cases", maxTestCases), "")
		return nil, doc.Err()
	}
	for i, t := range f.TestCases {
		s.Cases = append(s.Cases, t.toCase(doc, fmt.Sprintf("test_cases[%d]", i)))
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	if err := s.check(doc); err != nil {
		return nil, err
	}
	if s.Config, err = filepath.Abs(path); err != nil {
		s.Config = path
	}
	return s, nil
}

// toCase converts a test case. It refuses keys whose absence would change the result.
func (t *testCase) toCase(doc *config.Document, at string) Case {
	c := Case{Name: t.Name, Question: t.Input}
	if strings.TrimSpace(t.Input) == "" {
		doc.Add(at+".input", "'input' is required", "")
		c.Question = "-" // avoids a second error about the question
	}
	if t.Turns != nil {
		doc.Add(at+".turns", "test cases of several turns are not supported", "write one test case for each input")
	}
	for i, f := range t.Files {
		at := fmt.Sprintf("%s.files[%d]", at, i)
		switch {
		case f.URL != "":
			doc.Add(at+".url", "files from addresses are not supported", "download the file, and write path")
		case f.Path == "":
			doc.Add(at, "'path' is required", "")
		case f.Pages != nil || f.Sheet != "" || f.Range != "":
			doc.Add(at, "parts of files are not supported", "write the part into a file")
		case !slices.Contains([]string{"", "image", "pdf", "text", "csv"}, f.Type):
			doc.Add(at+".type", "files of type "+f.Type+" are not supported", "types: image, pdf, text, csv")
		default:
			c.Files = append(c.Files, f.Path)
		}
	}
	c.Expect.used = t.tools(doc, at+".expected_tools")
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"ground_truth", t.GroundTruth != ""}, {"evaluations", given(t.Evaluations)},
		{"retrieval_context", given(t.Context)},
	} {
		if k.given {
			c.unused = append(c.unused, k.name)
		}
	}
	return c
}

// given reports whether a key has a value.
func given(raw json.RawMessage) bool { return raw != nil && string(raw) != "null" }

// tools reads expected_tools.
func (t *testCase) tools(doc *config.Document, at string) []usedTool {
	if t.ExpectedTools == nil || string(t.ExpectedTools) == "null" {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(t.ExpectedTools, &list) != nil {
		doc.Add(at, "must be a list of names", "write expected_tools: [read_file]")
		return nil
	}
	var tools []usedTool
	for i, raw := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		u := usedTool{Count: 1}
		if json.Unmarshal(raw, &u.Name) != nil && json.Unmarshal(raw, &u) != nil || strings.TrimSpace(u.Name) == "" ||
			u.Count < 1 {
			doc.Add(at, "must be the name of a tool, or name, args and count", "")
			continue
		}
		if u.Args != nil {
			var err error
			if u.args, err = matchers(u.Args); err != nil {
				doc.Add(at, "args: "+err.Error(), "")
			}
			checkMatcher(doc, at, u.args)
		}
		tools = append(tools, u)
	}
	return tools
}

// matchers converts HoloDeck's matchers of arguments to matchers of this package. In both, {regex: …} must match a part
// of the text. {fuzzy: …} ignores case and differences of white space.
func matchers(raw json.RawMessage) (json.RawMessage, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	args, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be a map of arguments")
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		m, ok := args[name].(map[string]any)
		if !ok || len(m) != 1 {
			continue
		}
		if text, ok := m["regex"].(string); ok {
			args[name] = map[string]any{matchRegex: text}
		}
		if text, ok := m["fuzzy"].(string); ok {
			words := strings.Fields(text)
			for i, w := range words {
				words[i] = regexp.QuoteMeta(w)
			}
			args[name] = map[string]any{matchRegex: `(?i)^\s*` + strings.Join(words, `\s+`) + `\s*$`}
		}
	}
	return json.Marshal(args)
}

// missing describes the missing calls. It returns "" if none is missing. Only calls that reached their tool count. As
// in HoloDeck, the expected name may be a part of the tool's name. The tool's name is the name that the model sees, or
// SERVER-TOOL.
func (u usedTool) missing(got []view.Call) string {
	n := 0
	var differs string
	for _, c := range got {
		if !strings.Contains(c.Name, u.Name) && !strings.Contains(c.Server+"-"+c.Remote, u.Name) {
			continue
		}
		text := notMade(c)
		if text == "" && u.args != nil {
			text = Call{Tool: c.Name, Arguments: u.args}.fits(c)
		}
		if text == "" {
			n++
		} else {
			differs = ": " + text
		}
	}
	switch {
	case n >= u.Count:
		return ""
	case n > 0:
		return fmt.Sprintf("expected tool %s: %d calls, at least %d", u.Name, n, u.Count)
	case differs != "":
		return fmt.Sprintf("expected tool %s%s", u.Name, differs)
	}
	return fmt.Sprintf("expected tool %s%s", u.Name, nearestCall(Call{Tool: u.Name}, got))
}
