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
	"github.com/tenonhq/tenon/view"
)

// ChatRequest is the body of POST /chat and /chat/stream (ResearchAI).
type ChatRequest struct {
	Message     string   `json:"message"`
	Model       string   `json:"model"`
	Format      string   `json:"format"` // PLAIN_TEXT, JSON or XML
	SessionID   string   `json:"sessionId"`
	Temperature *float64 `json:"temperature"`
	MaxTokens   int      `json:"maxTokens"`
	// Provider is CLAUDE, OPENAI, or a provider of tenon. The model must belong to this provider.
	Provider string `json:"providerId"`
	// System is text that follows the agent's instructions.
	System     string         `json:"systemPrompt"`
	Parameters ChatParameters `json:"parameters"`
	// Busy determines the behaviour if the session has an unfinished run: refuse (409), queue (wait until the run has
	// ended), or steer (send the message to the run). If empty, it is refuse.
	Busy string `json:"busy"`
}

// ChatResponse is the answer of POST /chat, and the last event of /chat/stream.
type ChatResponse struct {
	Response     string       `json:"response"`
	SessionID    string       `json:"sessionId"`
	TokensUsed   int          `json:"tokensUsed"`
	TokenDetails TokenDetails `json:"tokenDetails"`
	Run          string       `json:"run"`
	// Citations are the sources of Response; their positions are byte offsets. Media are generated images and audio.
	Citations []tenon.Citation `json:"citations,omitempty"`
	Media     []view.Media     `json:"media,omitempty"`
	// Finish is MAX_TOKENS if the run ended at a limit. Error then describes the limit, and Response is the text so
	// far.
	Finish string `json:"finishReason,omitempty"`
	Error  string `json:"error,omitempty"`
}

// TokenDetails counts tokens. The first three fields sum all model calls of a run. The estimates cover only the message
// and the answer.
type TokenDetails struct {
	Input           int `json:"inputTokens"`
	Output          int `json:"outputTokens"`
	Total           int `json:"totalTokens"`
	EstimatedInput  int `json:"estimatedInputTokens"`
	EstimatedOutput int `json:"estimatedOutputTokens"`
	EstimatedTotal  int `json:"estimatedTotalTokens"`
}

// ChatWaiting is the error of a chat whose run needs approvals. The approvals have the form of GET /api/v1/approvals.
// The run continues when they are decided.
type ChatWaiting struct {
	Error     string          `json:"error"`
	SessionID string          `json:"sessionId"`
	Run       string          `json:"run"`
	Approvals []host.Approval `json:"approvals"`
}

func (c *call) chat() error {
	q, run, after, err := c.beginChat()
	if err != nil {
		return ofChat{err, "", q.SessionID}
	}
	f, err := c.follow(run, after, telling{})
	if err == nil && len(f.waiting) > 0 {
		c.w.Header().Set(headerRetry, "false")
		called, err := c.called(c.ctx(), run.ID)
		if err != nil || called {
			return c.answer(http.StatusFailedDependency, waitingChat(f))
		}
		return c.answer(http.StatusConflict, waitingChat(f))
	}
	if err == nil {
		err = failure(f)
	}
	if err != nil && !c.limited(f, err) {
		return ofChat{c.unrepeated(run.ID, err), run.ID, run.Session}
	}
	return c.answer(http.StatusOK, chatResponse(q, f))
}

// beginChat parses a ChatRequest and starts its run.
func (c *call) beginChat() (q ChatRequest, run tenon.Run, after uint64, err error) {
	if err := c.decode(&q, false); err != nil {
		return q, run, 0, err
	}
	if strings.TrimSpace(q.Message) == "" {
		return q, run, 0, tenon.Errorf(tenon.CodeInvalid, "Message cannot be empty")
	}
	ask := host.Question{Text: q.Message, Session: q.SessionID, Agent: c.cfg.Agent, Model: q.Model}
	switch strings.ToUpper(q.Format) {
	case "", "PLAIN_TEXT":
	case "JSON", "XML":
		ask.Text += "\n\nAnswer in valid " + strings.ToUpper(q.Format) + " and nothing else."
	default:
		return q, run, 0, tenon.Errorf(tenon.CodeInvalid, "format must be PLAIN_TEXT, JSON or XML, not '%s'", q.Format)
	}
	switch q.Busy {
	case "", busyRefuse, busyQueue, busySteer:
	default:
		return q, run, 0, tenon.Errorf(tenon.CodeInvalid, "busy must be refuse, queue or steer, not '%s'",
			tenon.Visible(q.Busy))
	}
	if err := q.checkSampling(); err != nil {
		return q, run, 0, err
	}
	ask.Sampling, ask.System = q.sampling(), q.System
	if id := q.SessionID; id != "" {
		ask.Agent = "" // the session's agent is used
		if _, err := c.mySession(id); tenon.ErrorCode(err) == tenon.CodeNotFound {
			q.SessionID = "" // the session does not exist, so errors do not name it
			return q, run, 0, tenon.Errorf(tenon.CodeNotFound, "Session not found")
		}
	}
	if ask.Model, err = c.modelOf(q, ask); err != nil {
		return q, run, 0, err
	}
	run, after, err = c.joinBusy(ask, q.Busy)
	return q, run, after, err
}

func chatResponse(q ChatRequest, f followed) ChatResponse {
	used := f.Tokens()
	total := used.Input + used.Output
	in, out := estimate(q.Message), estimate(f.Answer)
	r := ChatResponse{Response: f.Answer, SessionID: f.Session, TokensUsed: total, Run: f.Run,
		Citations: f.Report.Citations, Media: f.Media,
		TokenDetails: TokenDetails{used.Input, used.Output, total, in, out, in + out}}
	if f.Error != nil { // a limit: the answer is the text so far
		r.Error, r.Finish = f.Error.Message, "MAX_TOKENS"
		r.Response = cmp.Or(f.said, f.Error.Message)
	}
	return r
}

// estimate returns an estimate of the number of tokens of a text: one per four bytes.
func estimate(text string) int { return (len(text) + 3) / 4 }

func waitingChat(f followed) ChatWaiting {
	return ChatWaiting{Error: waitingText(f.waiting), SessionID: f.Session, Run: f.Run, Approvals: f.waiting}
}

// waitingText lists the approvals that a run needs.
func waitingText(list []host.Approval) string {
	var parts []string
	for _, a := range list {
		what := a.Server + "." + a.Remote
		if a.Kind == agent.AskLimit {
			what = a.Name
		}
		parts = append(parts, what+" ("+a.ID+")")
	}
	return fmt.Sprintf("approval required: %s; decide it with POST /api/v1/approvals/{id}/decide, body "+
		"{\"verdict\":\"allow\"} or deny, the slash of the id as %%2F; the run then continues: "+
		"GET /chat/stream?run=RUN. "+
		"policy.defaults.approval: never in tenon.yaml, or a rule for the tool, calls tools without asking",
		strings.Join(parts, ", "))
}

// failure returns the error of a run that ended without an answer, or nil.
func failure(f followed) error {
	switch {
	case f.State == tenon.RunCompleted:
		return nil
	case f.Error != nil:
		return f.Error
	case f.State == tenon.RunCancelled:
		return tenon.Errorf(tenon.CodeConflict, "run %s was cancelled", f.Run)
	}
	return tenon.Errorf(tenon.CodeModel, "run %s ended without an answer (%s)", f.Run,
		cmp.Or(string(f.Stop), string(f.State)))
}

// chatContent is a content block of a tool result in ResearchAI's format.
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
		b, err := json.Marshal(p) // MCP's format has the same members
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
