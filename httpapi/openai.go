package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// openModels lists the agents: each is a model of this API.
func (c *call) openModels() error {
	data := []any{}
	for _, a := range c.agentList() {
		data = append(data, openModelOf(a))
	}
	return c.answer(http.StatusOK, map[string]any{"object": "list", "data": data})
}

func openModelOf(a AgentInfo) any {
	return map[string]any{"id": a.Name, "object": "model", "created": 0, "owned_by": "tenon"}
}

func (c *call) openModel() error {
	a, err := c.openAgent(c.req.PathValue("model"))
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, openModelOf(a))
}

func (c *call) openAgent(name string) (AgentInfo, error) {
	list := c.agentList()
	i := slices.IndexFunc(list, func(a AgentInfo) bool { return a.Name == name })
	if i < 0 {
		return AgentInfo{}, tenon.Errorf(tenon.CodeNotFound, "there is no model '%s' here: each agent is one, and GET /v1/models lists them", name)
	}
	return list[i], nil
}

// completion is a run in the form of OpenAI's Chat Completions.
type completion struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []openChoice   `json:"choices"`
	Usage   *openUsage     `json:"usage,omitempty"`
	Tenon   *openExtension `json:"tenon,omitempty"`
}

type openChoice struct {
	Index   int          `json:"index"`
	Message *openMessage `json:"message,omitempty"`
	Delta   *openMessage `json:"delta,omitempty"`
	Reason  *string      `json:"finish_reason"`
}

type openMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	Refusal *string `json:"refusal,omitempty"`
}

// openUsage sums all model calls of a run.
type openUsage struct {
	Prompt       int            `json:"prompt_tokens"`
	Completion   int            `json:"completion_tokens"`
	Total        int            `json:"total_tokens"`
	PromptDetail map[string]int `json:"prompt_tokens_details"`
	Detail       map[string]int `json:"completion_tokens_details"`
}

// openExtension says what OpenAI's form has no place for. It stands in a whole answer
// and in the last chunk of a stream.
type openExtension struct {
	Run       string          `json:"run"`
	Session   string          `json:"session"`
	State     tenon.RunState  `json:"state"`
	Approvals []host.Approval `json:"approvals,omitempty"`
}

func usageOf(u tenon.Usage) *openUsage {
	return &openUsage{u.Input, u.Output, u.Input + u.Output, map[string]int{"cached_tokens": u.CacheRead}, map[string]int{"reasoning_tokens": u.Reasoning}}
}

// completions answers a conversation. Tools run on this side; a run that waits for a
// person ends the answer with what it waits for, and goes on when a later request ends
// with the user message "approve ID" or "deny ID".
func (c *call) completions() error {
	q, err := c.readCompletion()
	if err != nil {
		return err
	}
	run, after, err := c.beginCompletion(q)
	if err != nil {
		return err
	}
	base := completion{ID: "chatcmpl-" + run.ID, Object: "chat.completion", Created: run.Created.Unix(), Model: q.Model}
	c.w.Header().Set("Tenon-Run", run.ID)
	if q.Stream {
		return c.streamCompletion(q, base, run, after)
	}
	f, err := c.follow(run, after, telling{})
	if err == nil && len(f.waiting) == 0 {
		err = failure(f)
	}
	if err != nil {
		return err
	}
	text, reason := f.said+pending(f), finish(f)
	base.Choices = []openChoice{{Message: &openMessage{Role: "assistant", Content: &text}, Reason: &reason}}
	base.Usage, base.Tenon = usageOf(f.Usage), extension(f)
	return c.answer(http.StatusOK, base)
}

func extension(f followed) *openExtension {
	return &openExtension{f.Run, f.Session, f.State, f.waiting}
}

// finish is why an answer ended, in OpenAI's words.
func finish(f followed) string {
	switch {
	case f.Stop == tenon.StopMaxTokens:
		return "length"
	case f.Stop == tenon.StopContentFilter:
		return "content_filter"
	}
	return "stop"
}

// pending tells the user what a run waits for and how it goes on.
func pending(f followed) string {
	if len(f.waiting) == 0 {
		return ""
	}
	var b strings.Builder
	if f.said != "" {
		b.WriteString("\n\n")
	}
	for _, a := range f.waiting {
		switch a.Kind {
		case agent.AskApproval:
			b.WriteString("Approval required: " + a.Server + "." + a.Remote + " " + tenon.Visible(string(a.Arguments)))
		case agent.AskLimit:
			b.WriteString("Approval required to go on past a limit: " + a.Name)
		default:
			b.WriteString("Server " + a.Server + " asks for input for its tool " + a.Remote + "; answer it with POST /api/v1/approvals/{id}/decide")
		}
		b.WriteString("\nAnswer \"approve " + a.ID + "\" or \"deny " + a.ID + "\" to go on.\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// streamCompletion sends a run as chunks.
func (c *call) streamCompletion(q *completionRequest, base completion, run tenon.Run, after uint64) error {
	s, ok := c.stream("")
	if !ok {
		return nil
	}
	base.Object = "chat.completion.chunk"
	first := true
	send := func(v any) error {
		b, err := encode(v)
		if err != nil {
			return err
		}
		return s.write("data: " + string(c.h.Masked(b)) + "\n\n")
	}
	say := func(text string) error {
		chunk, m := base, openMessage{Content: &text}
		if first {
			m.Role, first = "assistant", false
		}
		chunk.Choices = []openChoice{{Delta: &m}}
		return send(chunk)
	}
	if err := say(""); err != nil {
		return nil // the client has gone
	}
	f, err := c.follow(run, after, telling{text: say})
	if err == nil && len(f.waiting) == 0 {
		err = failure(f)
	}
	if err != nil {
		p, _ := problem(err)
		_ = send(openAIError(p)) // who has gone misses nothing
		return nil
	}
	if text := pending(f); text != "" {
		if say(text) != nil {
			return nil
		}
	}
	reason := finish(f)
	last := base
	last.Choices, last.Tenon = []openChoice{{Delta: &openMessage{}, Reason: &reason}}, extension(f)
	if send(last) != nil {
		return nil
	}
	if q.Options != nil && q.Options.Usage {
		u := base
		u.Choices, u.Usage = []openChoice{}, usageOf(f.Usage)
		if send(u) != nil {
			return nil
		}
	}
	_ = s.write("data: [DONE]\n\n") // who has gone misses nothing
	return nil
}

// beginCompletion begins the run of a conversation, or decides what one waits for. Only
// events after the given one belong to the answer.
func (c *call) beginCompletion(q *completionRequest) (run tenon.Run, after uint64, err error) {
	if verdict, id, ok := ruling(q.question); ok {
		return c.ruled(verdict, id)
	}
	run, _, _, err = c.ask("", host.Question{Text: q.question, Agent: q.Model, History: q.history, Sampling: q.sampling(), System: q.system})
	return run, 0, err
}

// ruling reads the user's decision out of a message that is nothing else.
func ruling(text string) (verdict tenon.Verdict, id string, ok bool) {
	word, id, _ := strings.Cut(strings.TrimSpace(text), " ")
	verdict, ok = map[string]tenon.Verdict{"approve": tenon.Allow, "deny": tenon.Deny}[strings.ToLower(word)]
	id = strings.TrimSpace(id)
	return verdict, id, ok && strings.HasPrefix(id, "run_") && !strings.ContainsAny(id, " \n\t")
}

// ruled decides what a run waits for and has it go on. The answer goes on from there.
func (c *call) ruled(verdict tenon.Verdict, id string) (tenon.Run, uint64, error) {
	run, step, err := c.approval(id)
	if err != nil {
		return run, 0, err
	}
	if run.State.Ended() {
		return run, 0, tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s); there is nothing to decide any more", run.ID, run.State)
	}
	if err := c.give(run.ID); err != nil {
		return run, 0, err
	}
	after := run.Seq
	_, mine, err := c.h.Settle(c.ctx(), run.ID, step, agent.Ruling{Verdict: verdict, By: string(c.caller.Principal)})
	if err != nil {
		return run, 0, err
	}
	if !mine {
		return run, 0, tenon.Errorf(tenon.CodeConflict, "'%s' was decided before", id)
	}
	for run.Caller != "" { // the answer is that of the run that was asked
		if run, err = c.runOf(run.Caller); err != nil {
			return run, 0, err
		}
		after = run.Seq
	}
	if waiting, err := c.h.Awaited(c.ctx(), run.ID); err != nil || len(waiting) > 0 {
		return run, after, err // there is more to decide
	}
	run, err = c.goOn(run.ID)
	return run, after, err
}
