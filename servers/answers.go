package servers

import (
	"net/url"
	"path/filepath"

	"github.com/tenonhq/tenon/mcp"
)

// The treatments of a server's questions for input (elicitation) or for an answer of the model (sampling).
const (
	AnswerDeny  = "deny"  // the capability is not offered, so the server cannot ask
	AnswerAsk   = "ask"   // a person is asked
	AnswerAllow = "allow" // sampling only: a model answers at once
	// AnswerClient forwards the question to the client of the gateway whose call is running, if the client declared
	// that it can answer. During other calls, the capability is not offered.
	AnswerClient = "client"
)

// SamplingLimits bounds the server's use of the model.
type SamplingLimits struct {
	// Maximum number of output tokens of an answer, even if the server requests more.
	MaxTokens int `yaml:"max_tokens" min:"1" default:"2048"`
	// Maximum number of answers during one tool call.
	PerCall int `yaml:"per_call" min:"1" default:"8"`
	// Maximum number of answers per minute, for all calls of the server together.
	PerMinute int `yaml:"per_minute" min:"1" default:"20"`
}

func (l SamplingLimits) withDefaults() SamplingLimits {
	for _, d := range []struct {
		v *int
		n int
	}{{&l.MaxTokens, 2048}, {&l.PerCall, 8}, {&l.PerMinute, 20}} {
		if *d.v == 0 {
			*d.v = d.n
		}
	}
	return l
}

// Unoffered is a capability of a client that tenon does not offer to a server. Servers may leave out the tools that
// need it.
type Unoffered struct {
	Capability string `json:"capability"` // elicitation, roots or sampling, as MCP names them
	Key        string `json:"key"`        // of the server's configuration; setting it to Value offers the capability
	Value      string `json:"value"`      // an example of a value that does
}

// NotOffered returns the capabilities that the configuration does not offer to the server, in the order of their names.
func (c Config) NotOffered() (list []Unoffered) {
	if c.Transport == TransportJSONRPC {
		return nil // not MCP: the server cannot ask
	}
	a := c.Answers()
	if !a.Form && !a.Client.Elicitation {
		list = append(list, Unoffered{"elicitation", "elicitation", AnswerAsk})
	}
	if len(a.Roots) == 0 && !a.Client.Roots {
		list = append(list, Unoffered{"roots", "roots", "[.]"})
	}
	if !a.Sampling && !a.Client.Sampling {
		list = append(list, Unoffered{"sampling", "sampling", AnswerAsk})
	}
	return list
}

// Answers returns the kinds of questions that the server may ask.
func (c Config) Answers() mcp.Answers {
	asks := c.Elicitation == AnswerAsk || c.Elicitation == ""
	a := mcp.Answers{Form: asks, URL: asks, Sampling: c.Sampling == AnswerAsk || c.Sampling == AnswerAllow,
		Client: mcp.ClientAnswers{Elicitation: c.Elicitation == AnswerClient, Sampling: c.Sampling == AnswerClient,
			Roots: c.ClientRoots}}
	for _, dir := range c.Roots {
		path := filepath.ToSlash(dir)
		if filepath.VolumeName(dir) != "" {
			path = "/" + path // file:///C:/…
		}
		a.Roots = append(a.Roots, mcp.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(),
			Name: filepath.Base(dir)})
	}
	return a
}
