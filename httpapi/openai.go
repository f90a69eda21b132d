package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
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
		return AgentInfo{}, tenon.Errorf(tenon.CodeNotFound, "there is no model '%s' here: each agent is one, and "+
			"GET /v1/models lists them", name)
	}
	return list[i], nil
}

// completion is the answer of a run in the form of OpenAI's Chat Completions.
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
	// Logprobs are in complete answers and in the chunk before the last, if the request asks for them.
	Logprobs *openLogprobs `json:"logprobs,omitempty"`
}

// openLogprobs are the probabilities of the tokens of an answer in OpenAI's terms.
type openLogprobs struct {
	Content []openToken `json:"content"`
}

type openToken struct {
	Token   string      `json:"token"`
	Logprob float64     `json:"logprob"`
	Bytes   []int       `json:"bytes"`
	Top     []openToken `json:"top_logprobs"`
}

// logprobs returns the probabilities of tokens in OpenAI's terms, or nil if there are none.
func logprobs(list []tenon.TokenProb) *openLogprobs {
	if len(list) == 0 {
		return nil
	}
	return &openLogprobs{openTokens(list)}
}

func openTokens(list []tenon.TokenProb) []openToken {
	out := make([]openToken, len(list))
	for i, p := range list {
		bytes := p.Bytes
		if len(bytes) == 0 {
			bytes = []byte(p.Token)
		}
		out[i] = openToken{Token: p.Token, Logprob: p.Logprob, Bytes: make([]int, len(bytes)), Top: openTokens(p.Top)}
		for j, b := range bytes {
			out[i].Bytes[j] = int(b)
		}
	}
	return out
}

type openMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	Refusal *string `json:"refusal,omitempty"`
	// Annotations are the citations of addresses, in complete answers and in the chunk before the last.
	Annotations []openAnnotation `json:"annotations,omitempty"`
	// Calls are calls of the client's tools, for which the run waits.
	Calls []openCall `json:"tool_calls,omitempty"`
}

// openAnnotation is a citation in OpenAI's form. Its positions count characters of the content. This form can express
// only citations of addresses. The extension contains all citations.
type openAnnotation struct {
	Type string      `json:"type"`
	URL  openCitable `json:"url_citation"`
}

type openCitable struct {
	Start int    `json:"start_index"`
	End   int    `json:"end_index"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

// annotations returns the citations of an answer in OpenAI's terms.
func annotations(text string, list []tenon.Citation) []openAnnotation {
	var out []openAnnotation
	for _, c := range list {
		if c.URL == "" {
			continue
		}
		u := openCitable{URL: c.URL, Title: c.Title}
		if c.End > 0 && c.End <= len(text) && c.Start <= c.End {
			u.Start = utf8.RuneCountInString(text[:c.Start])
			u.End = u.Start + utf8.RuneCountInString(text[c.Start:c.End])
		}
		out = append(out, openAnnotation{"url_citation", u})
	}
	return out
}

// openUsage sums the model calls of an answer.
type openUsage struct {
	Prompt       int            `json:"prompt_tokens"`
	Completion   int            `json:"completion_tokens"`
	Total        int            `json:"total_tokens"`
	PromptDetail map[string]int `json:"prompt_tokens_details"`
	Detail       map[string]int `json:"completion_tokens_details"`
}

// openExtension contains the fields that OpenAI's format does not have. It is part of a complete answer, and of the
// last chunk of a stream.
type openExtension struct {
	Run       string          `json:"run"`
	Session   string          `json:"session"`
	State     tenon.RunState  `json:"state"`
	Error     *tenon.Error    `json:"error,omitempty"` // the limit at which the run ended
	Approvals []host.Approval `json:"approvals,omitempty"`
	// Citations contains all sources of the content; their positions are byte offsets. Media contains generated images
	// and audio; their bytes are at /api/v1/runs/{run}/artifacts/{artifact}.
	Citations []tenon.Citation `json:"citations,omitempty"`
	Media     []view.Media     `json:"media,omitempty"`
}

// usageOf returns the usage in OpenAI's form, or nil if no model reported its tokens. The answer then has no usage.
func usageOf(u *tenon.Usage) *openUsage {
	if u == nil {
		return nil
	}
	return &openUsage{u.Input, u.Output, u.Input + u.Output, map[string]int{"cached_tokens": u.CacheRead},
		map[string]int{"reasoning_tokens": u.Reasoning}}
}

// completions answers a conversation. The agent's tools are executed in this process. Calls of the client's own tools
// end the answer, and a request with their results continues the run. If the run needs an approval, the answer
// describes it and ends. If the last message of a later request is "approve ID" or "deny ID", it decides the approval.
// The answer to this request is the rest of the run.
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
	c.begun(run.ID)
	if q.Stream {
		return c.streamCompletion(q, base, run, after)
	}
	f, err := c.complete(run, after, telling{})
	if err != nil {
		return c.unrepeated(run.ID, err)
	}
	text, reason := f.said+f.rest(), finish(f)
	m := &openMessage{Role: "assistant", Content: &text, Calls: f.calls, Annotations: annotations(text, f.cited)}
	if text == "" && len(f.calls) > 0 {
		m.Content = nil
	}
	base.Choices = []openChoice{{Message: m, Reason: &reason, Logprobs: logprobs(f.probs)}}
	base.Usage, base.Tenon = usageOf(f.Usage), extension(f)
	return c.answer(http.StatusOK, base)
}

// complete follows a run up to the end of an answer. The usage in the result counts only the events after the number
// after.
func (c *call) complete(run tenon.Run, after uint64, tell telling) (followed, error) {
	tell.calls = true
	f, err := c.follow(run, after, tell)
	if err != nil {
		return f, err
	}
	if f.calls == nil {
		f.calls, _ = callsOf(f.waiting)
	}
	if len(f.waiting) == 0 && len(f.calls) == 0 {
		if err := failure(f); err != nil && !c.limited(f, err) {
			return f, err
		}
	}
	if after > 0 || f.until > 0 {
		f.Usage, err = c.usageBetween(run, after, f.until)
	}
	return f, err
}

// rest returns the text that follows the text of the model in an answer. It describes the approvals that the run needs.
// If the run ended at a limit and the model said nothing, it names the limit.
func (f *followed) rest() string {
	if f.said == "" && f.Error != nil {
		return f.Error.Message
	}
	return pending(*f)
}

func extension(f followed) *openExtension {
	_, rest := callsOf(f.waiting)
	return &openExtension{f.Run, f.Session, f.State, f.Error, rest, f.cited, f.Media}
}

// finish returns the finish_reason of an answer in OpenAI's terms.
func finish(f followed) string {
	switch {
	case len(f.calls) > 0:
		return "tool_calls"
	case f.Stop == tenon.StopMaxTokens, f.State == tenon.RunFailed:
		return "length"
	case f.Stop == tenon.StopContentFilter:
		return "content_filter"
	}
	return "stop"
}

// pending returns a text for the user that describes the approvals that a run needs, and how to decide them. It returns
// "" if the client has calls to execute, because their results come first.
func pending(f followed) string {
	if len(f.waiting) == 0 || len(f.calls) > 0 {
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
			b.WriteString("Approval required to continue past a limit: " + a.Name)
		default:
			b.WriteString("Server " + a.Server + " asks for input for its tool " + a.Remote +
				"; answer it with POST /api/v1/approvals/{id}/decide")
		}
		b.WriteString("\nAnswer \"approve " + a.ID + "\" or \"deny " + a.ID + "\" to continue.\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// streamCompletion sends the answer of a run as a stream of chunks.
func (c *call) streamCompletion(q *completionRequest, base completion, run tenon.Run, after uint64) error {
	s, ok := c.stream("")
	if !ok {
		return nil
	}
	p := &pulsing{s: &s, wrote: time.Now()}
	defer p.keepAlive(cmp.Or(c.cfg.Beat, beat))()
	base.Object = "chat.completion.chunk"
	first := true
	send := func(v any) error {
		b, err := encode(v)
		if err != nil {
			return err
		}
		return p.write("data: " + string(c.h.Service().Callers().Mask(b)) + "\n\n")
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
	f, err := c.complete(run, after, telling{text: say})
	if err != nil {
		p, _ := c.problem(c.unrepeated(run.ID, err))
		_ = send(openAIError(p)) // fails only if the client has disconnected
		return nil
	}
	if text := f.rest(); text != "" {
		if say(text) != nil {
			return nil
		}
	}
	if list := annotations(f.said, f.cited); len(list) > 0 {
		chunk := base
		chunk.Choices = []openChoice{{Delta: &openMessage{Annotations: list}}}
		if send(chunk) != nil {
			return nil
		}
	}
	if list := logprobs(f.probs); list != nil {
		chunk := base
		chunk.Choices = []openChoice{{Delta: &openMessage{}, Logprobs: list}}
		if send(chunk) != nil {
			return nil
		}
	}
	for _, d := range deltas(f.calls) {
		chunk := base
		chunk.Choices = []openChoice{{Delta: &openMessage{Calls: []openCall{d}}}}
		if send(chunk) != nil {
			return nil
		}
	}
	reason := finish(f)
	last := base
	last.Choices, last.Tenon = []openChoice{{Delta: &openMessage{}, Reason: &reason}}, extension(f)
	if send(last) != nil {
		return nil
	}
	if q.Options != nil && q.Options.Usage && f.Usage != nil {
		u := base
		u.Choices, u.Usage = []openChoice{}, usageOf(f.Usage)
		if send(u) != nil {
			return nil
		}
	}
	_ = p.write("data: [DONE]\n\n") // fails only if the client has disconnected
	return nil
}

// beginCompletion starts the run of a conversation. If the last message is a decision, it decides the approval and
// resumes that run instead. If results of the client's tools are at the end, it continues their run. The answer
// consists of the run's events after the number after.
func (c *call) beginCompletion(q *completionRequest) (run tenon.Run, after uint64, err error) {
	if verdict, id, ok := ruling(q.talk.question); ok && len(q.talk.results) == 0 {
		return c.ruled(verdict, id)
	}
	if len(q.talk.results) > 0 {
		run, after, ok, err := c.deliver(q)
		if ok || err != nil {
			return run, after, err
		}
	}
	question, err := q.question()
	if err != nil {
		return run, 0, err
	}
	return c.join(question, false)
}

// ruling parses a message that is exactly a decision: "approve ID" or "deny ID".
func ruling(text string) (verdict tenon.Verdict, id string, ok bool) {
	word, id, _ := strings.Cut(strings.TrimSpace(text), " ")
	verdict, ok = map[string]tenon.Verdict{"approve": tenon.Allow, "deny": tenon.Deny}[strings.ToLower(word)]
	id = strings.TrimSpace(id)
	return verdict, id, ok && strings.HasPrefix(id, "run_") && !strings.ContainsAny(id, " \n\t")
}

// ruled decides an approval and resumes the run. The answer consists of the events after the returned number.
func (c *call) ruled(verdict tenon.Verdict, id string) (tenon.Run, uint64, error) {
	run, step, err := c.approval(id)
	if err != nil {
		return run, 0, err
	}
	if run.State.Ended() {
		return run, 0, tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s), so nothing can be decided",
			run.ID, run.State)
	}
	if err := c.give(run.ID); err != nil {
		return run, 0, err
	}
	after := run.Seq
	_, mine, err := c.h.Approvals().Decide(c.ctx(), run.ID, step,
		agent.Ruling{Verdict: verdict, By: string(c.caller.Principal)})
	if err != nil {
		return run, 0, err
	}
	if !mine {
		return run, 0, tenon.Errorf(tenon.CodeConflict, "'%s' was decided before", id)
	}
	for run.Caller != "" { // answer with the run that the client started, not with a run that it called
		if run, err = c.runOf(run.Caller); err != nil {
			return run, 0, err
		}
		after = run.Seq
	}
	run, err = c.goOn(run.ID) // even if other approvals are pending, because the other calls of the turn can begin
	return run, after, err
}
