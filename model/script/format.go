package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"syscall"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// MaxFile bounds the size of a script file in bytes.
const MaxFile = 4 << 20

// Conversation is one of several scripts in a file. The model plays the first conversation whose
// Match fits the question and whose Tools are available.
type Conversation struct {
	// Match contains texts, one of which must occur in the last user message, ignoring case. If
	// empty, every question matches.
	Match Strings `yaml:"match"`
	// Tools contains exposed names of tools that must be available.
	Tools Strings `yaml:"tools"`
	Steps []Step  `yaml:"steps"`
}

// Step is an answer of the model. All keys are optional. The answer of an empty step is empty.
type Step struct {
	// Expect contains texts that must all occur in the last message (including its tool results) or
	// in the system prompt. Otherwise the request fails.
	Expect Strings `yaml:"expect"`
	// ExpectTools contains exposed names of tools that must be available. A tool of the provider is "provider/NAME".
	ExpectTools Strings `yaml:"expect_tools"`
	// Delay is the delay before the answer: a Go duration such as 300ms.
	Delay time.Duration `yaml:"delay"`
	// Partial is text that is streamed and then discarded (a reset), as after a broken connection.
	Partial string `yaml:"partial"`
	// Thinking is streamed before the text.
	Thinking string `yaml:"thinking"`
	// Text is the answer.
	Text string `yaml:"text"`
	// Citations are the sources of the text.
	Citations []Citation `yaml:"citations"`
	// Media are images and audio that the model generates.
	Media []Media `yaml:"media"`
	// Chunk is the number of characters of a streamed piece. 0 means one word.
	Chunk int `yaml:"chunk"`
	// ChunkDelay is the delay between two pieces.
	ChunkDelay time.Duration `yaml:"chunk_delay"`
	// Uses are the uses of tools of the provider, which must be available. They are before the text.
	Uses []Use `yaml:"uses"`
	// Calls are the tool calls of the answer, in order.
	Calls []Call `yaml:"calls"`
	// Stop is the stop reason; default tool_use with calls, else stop.
	Stop tenon.StopReason `yaml:"stop"`
	// Usage is the token usage of the answer. If absent, the answer has no usage.
	Usage *Usage `yaml:"usage"`
	// Error ends the request with an error instead of an answer. The text and the thinking of the
	// step are streamed first.
	Error *Failure `yaml:"error"`
	// Repeat is the number of times that the step is played, or "forever".
	Repeat Repeat `yaml:"repeat"`

	line int
}

// Call is one tool call of a step.
type Call struct {
	Name string `yaml:"name"`
	// Arguments as YAML; absent means {}.
	Arguments yaml.Node `yaml:"arguments"`
	// Raw is the text of the arguments instead. It may be invalid JSON.
	Raw string `yaml:"raw"`
	// ID is the id of the call. The default is call_STEP_INDEX.
	ID string `yaml:"id"`
	// Connector is the name of an MCP server among the tools of the provider. The provider makes the call and asks for
	// an approval.
	Connector string `yaml:"connector"`

	args json.RawMessage
}

// Use is one use of a tool of the provider.
type Use struct {
	Name string `yaml:"name"` // of an entry of models.NAME.tools
	// Input as YAML; absent means {}.
	Input yaml.Node `yaml:"input"`

	input json.RawMessage
}

// Citation is a source of the text; see [tenon.Citation].
type Citation struct {
	Title string `yaml:"title"`
	URL   string `yaml:"url"`
	File  string `yaml:"file"`
	Quote string `yaml:"quote"`
	Start int    `yaml:"start"`
	End   int    `yaml:"end"`
}

// Media is generated data.
type Media struct {
	MimeType string `yaml:"mime_type"`
	Data     string `yaml:"data"` // base64
}

// Usage counts tokens.
type Usage struct {
	Input  int `yaml:"input_tokens"`
	Output int `yaml:"output_tokens"`
	// Searches is the number of web searches that the provider charges.
	Searches int `yaml:"searches"`
}

// Failure is an error of the model's provider.
type Failure struct {
	// Code is one of tenon's error codes. The default is model_error.
	Code tenon.Code `yaml:"code"`
	// Status is the HTTP status in the message.
	Status  int    `yaml:"status"`
	Message string `yaml:"message"`
}

// Repeat is the number of times that a step is played. 0 and 1 mean once.
type Repeat int

// Forever repeats a step without limit.
const Forever Repeat = math.MaxInt32

// UnmarshalYAML reads a count or the word forever.
func (r *Repeat) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "forever" {
		*r = Forever
		return nil
	}
	var i int
	if err := n.Decode(&i); err != nil || i < 1 || i >= int(Forever) {
		return fmt.Errorf("line %d: repeat must be a count from 1 or forever, not '%s'", n.Line, n.Value)
	}
	*r = Repeat(i)
	return nil
}

// Strings is a list of texts. In YAML, a single text need not be a list.
type Strings []string

// UnmarshalYAML reads a text or a list of texts.
func (s *Strings) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = Strings{n.Value}
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return err
	}
	*s = list
	return nil
}

type file struct {
	Steps         []yaml.Node `yaml:"steps"`
	Conversations []struct {
		Match Strings     `yaml:"match"`
		Tools Strings     `yaml:"tools"`
		Steps []yaml.Node `yaml:"steps"`
	} `yaml:"conversations"`
}

// Load reads a script from a regular file. Errors have code not_found, invalid (no regular file), too_large or config;
// errors in the script name the line.
func Load(path string) (*Model, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeNotFound, "script %s: %w; name a file of steps", path, cause(err))
	case !st.Mode().IsRegular(): // to open or read a pipe or a device can block for ever
		return nil, tenon.Errorf(tenon.CodeInvalid, "script %s: it is not a regular file; name a file of steps", path)
	}
	// Without blocking, in case that a pipe has taken the file's place since.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "script %s: %w; name a file of steps", path, cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeNotFound, "script %s: %w", path, cause(err))
	case len(data) > MaxFile:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "script %s: larger than %d bytes", path, MaxFile)
	}
	return Parse(path, data)
}

func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Parse reads a script from memory. name is used in errors and in the model's name.
func Parse(name string, data []byte) (*Model, error) {
	fail := func(err error) (*Model, error) {
		return nil, tenon.Errorf(tenon.CodeConfig, "script %s: %w", name, plain(err))
	}
	var f file
	if err := decode(data, &f); err != nil {
		if !isScript(data) {
			err = errors.New("it is not a file of steps; a script is a YAML file with the key steps or conversations")
		}
		return fail(err)
	}
	m := &Model{name: name}
	if len(f.Conversations) == 0 {
		steps, err := readSteps(f.Steps)
		if err != nil {
			return fail(err)
		}
		m.conversations = []Conversation{{Steps: steps}}
	}
	if len(f.Steps) > 0 && len(f.Conversations) > 0 {
		return fail(errors.New("it has both steps and conversations; put the steps into a conversation"))
	}
	for _, c := range f.Conversations {
		steps, err := readSteps(c.Steps)
		if err != nil {
			return fail(err)
		}
		m.conversations = append(m.conversations, Conversation{c.Match, c.Tools, steps})
	}
	for _, c := range m.conversations {
		if len(c.Steps) == 0 {
			return fail(errors.New("no steps; a script is a list of answers under the key steps"))
		}
	}
	return m, nil
}

// isScript reports whether data looks like a script, perhaps one with mistakes. Errors quote only such a file. Any
// other file was named by mistake, and can hold secrets.
func isScript(data []byte) bool {
	keys := []string{"steps", "conversations"}
	var root map[string]yaml.Node
	if l, err := yaml.NewLoader(bytes.NewReader(data)); err == nil && l.Load(&root) == nil {
		for key := range root {
			if slices.Contains(keys, key) || tenon.Nearest(key, keys) != "" {
				return true
			}
		}
		return false
	}
	return keyLine().Match(data) // not YAML as a whole
}

// keyLine is a line with a key of a script.
var keyLine = lazyregexp.New(`(?m)^(steps|conversations)\s*:`)

func decode(data []byte, out any) error {
	l, err := yaml.NewLoader(bytes.NewReader(withPairs(data)), yaml.WithKnownFields(), yaml.WithUniqueKeys())
	if err != nil {
		return err
	}
	if err := l.Load(out); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// withPairs replaces escaped surrogate pairs in JSON, such as \ud83d\ude00, by their characters. YAML does not support
// such pairs, but Python's json.dumps writes each character beyond U+FFFF as a pair.
func withPairs(data []byte) []byte {
	if !pairs().Match(data) || !json.Valid(data) {
		return data
	}
	return pairs().ReplaceAllFunc(data, func(found []byte) []byte {
		var r string
		if len(found) == len(`\\`) || json.Unmarshal([]byte(`"`+string(found)+`"`), &r) != nil {
			return found
		}
		return []byte(r)
	})
}

// pairs finds escaped pairs, and escaped backslashes, after which no escape begins.
var pairs = lazyregexp.New(`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

func readSteps(nodes []yaml.Node) ([]Step, error) {
	steps := make([]Step, len(nodes))
	for i := range nodes {
		s := &steps[i]
		if err := nodes[i].Load(s, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, plain(err))
		}
		s.line = nodes[i].Line
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("step %d (line %d): %w", i+1, s.line, err)
		}
	}
	return steps, nil
}

func (s *Step) check() error {
	for i := range s.Calls {
		c := &s.Calls[i]
		switch {
		case c.Name == "":
			return fmt.Errorf("call %d has no name", i+1)
		case c.Raw != "" && c.Arguments.Kind != 0:
			return fmt.Errorf("call %s has both arguments and raw", c.Name)
		case c.Raw != "":
			continue
		}
		var err error
		if c.args, err = object(&c.Arguments); err != nil {
			return fmt.Errorf("arguments of %s: %w", c.Name, err)
		}
	}
	for i := range s.Uses {
		u := &s.Uses[i]
		if u.Name == "" {
			return fmt.Errorf("use %d has no name", i+1)
		}
		var err error
		if u.input, err = object(&u.Input); err != nil {
			return fmt.Errorf("input of %s: %w", u.Name, err)
		}
	}
	switch s.Stop {
	case "", tenon.StopEnd, tenon.StopToolUse, tenon.StopMaxTokens, tenon.StopContextFull, tenon.StopContentFilter,
		tenon.StopPause, tenon.StopBadCall, tenon.StopError, tenon.StopCancelled:
	default:
		return fmt.Errorf("unknown stop reason '%s'; use one of stop, tool_use, max_tokens, context_full, "+
			"content_filter, pause, bad_call, error", s.Stop)
	}
	if s.Delay < 0 || s.ChunkDelay < 0 || s.Chunk < 0 {
		return errors.New("delay, chunk_delay and chunk must not be negative")
	}
	return nil
}

// object returns a value as JSON, or {} if it is absent.
func object(n *yaml.Node) (json.RawMessage, error) {
	if n.Kind == 0 || n.Tag == "!!null" {
		return json.RawMessage("{}"), nil
	}
	return appendJSON(nil, n)
}

// appendJSON encodes a YAML value as JSON. It keeps the order of keys and the digits of numbers.
func appendJSON(dst []byte, n *yaml.Node) ([]byte, error) {
	var err error
	switch n.Kind {
	case yaml.AliasNode:
		return nil, fmt.Errorf("line %d: aliases are not supported in arguments", n.Line)
	case yaml.MappingNode:
		dst = append(dst, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rawjson.AppendString(dst, n.Content[i].Value)
			dst = append(dst, ':')
			if dst, err = appendJSON(dst, n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, e := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendJSON(dst, e); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	tag := n.ShortTag()
	if (tag == "!!int" || tag == "!!float" || tag == "!!bool" || tag == "!!null") && json.Valid([]byte(n.Value)) {
		return append(dst, n.Value...), nil
	}
	if tag == "!!str" || tag == "!!timestamp" || tag == "!!binary" {
		return rawjson.AppendString(dst, n.Value), nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	js, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return append(dst, js...), nil
}
