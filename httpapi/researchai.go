package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

// ChatRequest is the body of POST /chat and /chat/stream (ResearchAI).
type ChatRequest struct {
	Message     string   `json:"message"`
	Model       string   `json:"model"`
	Format      string   `json:"format"` // PLAIN_TEXT, JSON or XML
	SessionID   string   `json:"sessionId"`
	Temperature *float64 `json:"temperature"`
	MaxTokens   int      `json:"maxTokens"`
}

// ChatResponse is the answer of POST /chat, and the last event of /chat/stream.
type ChatResponse struct {
	Response     string       `json:"response"`
	SessionID    string       `json:"sessionId"`
	TokensUsed   int          `json:"tokensUsed"`
	TokenDetails TokenDetails `json:"tokenDetails"`
}

// TokenDetails counts tokens: of all model calls of a run, and, estimated, of the
// message and the answer.
type TokenDetails struct {
	Input           int `json:"inputTokens"`
	Output          int `json:"outputTokens"`
	Total           int `json:"totalTokens"`
	EstimatedInput  int `json:"estimatedInputTokens"`
	EstimatedOutput int `json:"estimatedOutputTokens"`
	EstimatedTotal  int `json:"estimatedTotalTokens"`
}

// ChatWaiting is the error of a chat whose run waits for somebody: what for, as
// GET /api/v1/approvals lists it. Once that is decided the run goes on.
type ChatWaiting struct {
	Error     string          `json:"error"`
	SessionID string          `json:"sessionId"`
	Run       string          `json:"run"`
	Approvals []host.Approval `json:"approvals"`
}

func (c *call) chat() error {
	q, run, err := c.beginChat()
	if err != nil {
		return err
	}
	f, err := c.follow(run, 0, telling{})
	if err != nil {
		return err
	}
	if len(f.waiting) > 0 {
		return c.answer(http.StatusConflict, waitingChat(f))
	}
	if err := failure(f); err != nil {
		return err
	}
	return c.answer(http.StatusOK, chatResponse(q, f))
}

// chatStream answers with the events text {delta}, tool {name, success}, and, as the
// last one, done (a ChatResponse) or error {error}.
func (c *call) chatStream() error {
	q, run, err := c.beginChat()
	if err != nil {
		return err
	}
	s, ok := c.stream(": run " + run.ID + "\n\n")
	if !ok {
		return nil
	}
	send := func(event string, v any) error {
		b, err := encode(v)
		if err != nil {
			return err
		}
		return s.write("event: " + event + "\ndata: " + string(c.h.Masked(b)) + "\n\n")
	}
	f, err := c.follow(run, 0, telling{
		text: func(t string) error { return send("text", map[string]string{"delta": t}) },
		tool: func(name string, ok bool) error {
			return send("tool", map[string]any{"name": name, "success": ok})
		},
	})
	if err == nil && len(f.waiting) == 0 {
		err = failure(f)
	}
	switch {
	case err != nil:
		p, _ := problem(err)
		_ = send("error", map[string]string{"error": p.Detail}) // who has gone misses nothing
	case len(f.waiting) > 0:
		_ = send("error", waitingChat(f))
	default:
		_ = send("done", chatResponse(q, f))
	}
	return nil
}

// beginChat begins the run of a message.
func (c *call) beginChat() (q ChatRequest, run tenon.Run, err error) {
	if err := c.decode(&q, false); err != nil {
		return q, run, err
	}
	if strings.TrimSpace(q.Message) == "" {
		return q, run, tenon.Errorf(tenon.CodeInvalid, "Message cannot be empty")
	}
	ask := host.Question{Text: q.Message, Session: q.SessionID, Agent: c.cfg.Agent, Model: c.chatModel(q.Model)}
	switch strings.ToUpper(q.Format) {
	case "", "PLAIN_TEXT":
	case "JSON", "XML":
		ask.Text += "\n\nAnswer in valid " + strings.ToUpper(q.Format) + " and nothing else."
	default:
		return q, run, tenon.Errorf(tenon.CodeInvalid, "format must be PLAIN_TEXT, JSON or XML, not '%s'", q.Format)
	}
	if q.Temperature != nil || q.MaxTokens != 0 {
		ask.Sampling = &agent.Sampling{MaxTokens: q.MaxTokens, Temperature: q.Temperature}
	}
	if q.SessionID != "" {
		ask.Agent = "" // that of the session
		if _, err := c.mySession(q.SessionID); tenon.ErrorCode(err) == tenon.CodeNotFound {
			return q, run, tenon.Errorf(tenon.CodeNotFound, "Session not found")
		}
	}
	run, _, _, err = c.ask("", ask)
	return q, run, err
}

// chatModel finds the model of a name as ResearchAI does, after our own names: an entry
// of models, provider/name, then gpt-… at OpenAI and claude… at Anthropic.
func (c *call) chatModel(name string) string {
	provider, _, slash := strings.Cut(name, "/")
	_, configured := c.h.Config().Models[name]
	_, known := model.Lookup(provider)
	switch {
	case name == "", configured, slash && known, strings.HasPrefix(name, "script:"), name == host.DemoModel:
		return name
	case strings.HasPrefix(name, "gpt-"):
		return "openai/" + name
	case strings.HasPrefix(name, "claude"):
		return "anthropic/" + name
	}
	return name // Start names the models that there are
}

func chatResponse(q ChatRequest, f followed) ChatResponse {
	total := f.Usage.Input + f.Usage.Output
	in, out := estimate(q.Message), estimate(f.Answer)
	return ChatResponse{f.Answer, f.Session, total, TokenDetails{f.Usage.Input, f.Usage.Output, total, in, out, in + out}}
}

// estimate is how many tokens a text may have: one for four bytes.
func estimate(text string) int { return (len(text) + 3) / 4 }

func waitingChat(f followed) ChatWaiting {
	return ChatWaiting{Error: waitingText(f.waiting), SessionID: f.Session, Run: f.Run, Approvals: f.waiting}
}

// waitingText says what a run waits for.
func waitingText(list []host.Approval) string {
	var parts []string
	for _, a := range list {
		what := a.Server + "." + a.Remote
		if a.Kind == agent.AskLimit {
			what = a.Name
		}
		parts = append(parts, what+" ("+a.ID+")")
	}
	return fmt.Sprintf("approval required: %s", strings.Join(parts, ", "))
}

// failure is the error of a run that did not come to an answer.
func failure(f followed) error {
	switch {
	case f.State == tenon.RunCompleted:
		return nil
	case f.Error != nil:
		return f.Error
	case f.State == tenon.RunCancelled:
		return tenon.Errorf(tenon.CodeConflict, "run %s was cancelled", f.Run)
	}
	return tenon.Errorf(tenon.CodeModel, "run %s came to no answer (%s)", f.Run, cmp.Or(string(f.Stop), string(f.State)))
}

// chatContent is a part of a tool's result in ResearchAI's form.
type chatContent struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
}

func chatContents(list []tenon.Content) []chatContent {
	out := []chatContent{}
	for _, p := range list {
		b, err := json.Marshal(p) // MCP's own form has all of it
		var raw struct {
			chatContent
			Resource *struct {
				URI, Text, Blob, MimeType string
			} `json:"resource"`
		}
		if err != nil || json.Unmarshal(b, &raw) != nil {
			continue
		}
		if r := raw.Resource; r != nil {
			raw.chatContent = chatContent{raw.Type, r.Text, r.Blob, r.MimeType, r.URI}
		}
		out = append(out, raw.chatContent)
	}
	return out
}
