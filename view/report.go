package view

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// Report is the outcome of a run as one JSON object.
type Report struct {
	Run     string           `json:"run"`
	Session string           `json:"session"`
	State   tenon.RunState   `json:"state"`
	Stop    tenon.StopReason `json:"stop_reason,omitempty"`
	Answer  string           `json:"answer"`
	// Partial is the text of the last model call if it was stopped or failed while its answer arrived.
	Partial string          `json:"partial,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"` // the answer as JSON, if the run has an output schema
	// Citations are the sources that the model names for the answer. Start and End are byte offsets in Answer.
	Citations []tenon.Citation `json:"citations,omitempty"`
	Media     []Media          `json:"media,omitempty"` // images and audio that the model has generated
	// Logprobs are the probabilities of the tokens of the answer, if the settings ask for them.
	Logprobs  []tenon.TokenProb `json:"logprobs,omitempty"`
	Turns     int               `json:"turns"`
	ToolCalls []Call            `json:"tool_calls"`
	// Usage counts the tokens of all model calls that reported them; nil if there were calls, and none did.
	Usage *tenon.Usage `json:"usage"`
	// Unmetered is the number of model calls whose provider reported no tokens.
	Unmetered int             `json:"unmetered_calls,omitempty"`
	Cost      *tenon.USD      `json:"cost"` // nil if no price is known
	Error     *tenon.Error    `json:"error,omitempty"`
	Waiting   []tenon.Waiting `json:"waiting,omitempty"`
	Model     string          `json:"model,omitempty"`
	Agent     string          `json:"agent,omitempty"`
}

// Tokens returns the reported tokens, and zeros if none are known.
func (r *Report) Tokens() tenon.Usage {
	if r.Usage == nil {
		return tenon.Usage{}
	}
	return *r.Usage
}

// Media is an image or audio that a model has generated. Its artifact has the bytes.
type Media struct {
	Artifact string `json:"artifact"`
	MimeType string `json:"mime_type"`
	Bytes    int    `json:"bytes"`
}

// Generated returns the images and audio in an answer of a model. The parameters are the run and the step of its event.
func Generated(run, step string, m *tenon.Message) []Media {
	var list []Media
	if m == nil {
		return nil
	}
	for i, p := range m.Parts {
		if p.Data != "" {
			size := base64.StdEncoding.DecodedLen(len(p.Data)) - strings.Count(p.Data[max(len(p.Data)-2, 0):], "=")
			list = append(list, Media{tenon.ArtifactID(run, step, i), p.MimeType, size})
		}
	}
	return list
}

// maxMedia bounds the generated media in a report.
const maxMedia = 256

// totals is the part of the fold from which the report is made.
type totals struct {
	answer  string
	partial string
	output  json.RawMessage
	cited   []tenon.Citation
	probs   []tenon.TokenProb
	media   []Media
	turns   int
	usage   tenon.Usage
	unknown int        // model calls without usage
	cost    *tenon.USD // nil if no price is known
	done    *tenon.DoneData
}

func (t *totals) apply(e tenon.Event, data any) {
	switch d := data.(type) {
	case *agent.Answer:
		t.model(d.Model, d.Usage, d.Cost)
	case *agent.Input:
		t.model(d.Model, d.Usage, d.Cost)
	case *agent.Answered:
		t.partial = ""
		t.answered(d)
		if list := Generated(e.Run, e.Step, d.Message); len(t.media)+len(list) <= maxMedia {
			t.media = append(t.media, list...)
		}
	case *tenon.StartedData:
		if d.Kind == agent.CommandModel || d.Kind == agent.CommandFinal {
			t.partial = ""
		}
	case *agent.Partial:
		t.partial = d.Text
	case *agent.Failure:
		if d.Partial != nil {
			t.partial = d.Partial.Text
		}
	case *agent.Compacted:
		t.model(d.Summary, d.Usage, d.Cost)
		if d.Why == agent.CompactAsked {
			t.answer = d.Summary
		}
	case *agent.Outcome:
		t.spent(d.Spent)
	case *tenon.DoneData:
		t.done = d
		if t.answer == "" { // a workflow has no model, so its message is the answer
			t.answer = d.Answer
		}
	}
	if e.Kind == tenon.EventRetry {
		t.done = nil
	}
}

func (t *totals) answered(d *agent.Answered) {
	if d.Message == nil {
		return
	}
	t.turns++
	if d.Usage == nil {
		t.unknown++
	}
	t.use(d.Usage, d.Cost)
	text := d.Message.Text()
	if text != "" {
		t.answer, t.cited, t.probs = text, d.Message.Citations(), d.Logprobs
	}
	t.output = d.Output
	if len(d.Output) > 0 {
		t.answer = string(d.Output)
		for i := range t.cited { // their positions refer to the model's text
			t.cited[i].Start, t.cited[i].End = 0, 0
		}
	}
}

// spent adds the usage and cost of a run that this run called.
func (t *totals) spent(s *agent.Summary) {
	if s != nil {
		t.unknown += s.Unmetered
	}
	switch {
	case s == nil:
	case s.Cost == 0: // a workflow, or a model without a known price
		t.use(&s.Usage, nil)
	default:
		t.use(&s.Usage, &s.Cost)
	}
}

// model adds the usage and cost of a call of a model. If by is empty, no model was called.
func (t *totals) model(by string, u *tenon.Usage, cost *tenon.USD) {
	if by != "" && u == nil {
		t.unknown++
	}
	t.use(u, cost)
}

// use adds the usage and cost of a model call. u and cost may be nil.
func (t *totals) use(u *tenon.Usage, cost *tenon.USD) {
	t.usage.Add(u)
	if cost != nil {
		sum := *cost
		if t.cost != nil {
			sum += *t.cost
		}
		t.cost = &sum
	}
}

func (t *totals) report(row tenon.Run, calls []Call) Report {
	sum := *t
	for _, c := range calls {
		if c.Cost > 0 {
			sum.use(nil, &c.Cost)
		}
	}
	r := Report{Run: row.ID, Session: row.Session, State: row.State, Stop: row.Stop, Answer: sum.answer,
		Partial: sum.partial, Output: sum.output, Turns: sum.turns, ToolCalls: calls, Cost: sum.cost,
		Unmetered: sum.unknown,
		Waiting:   row.Waiting, Model: row.Model, Agent: row.Agent, Citations: sum.cited, Media: sum.media,
		Logprobs: sum.probs}
	if sum.unknown == 0 || sum.usage != (tenon.Usage{}) {
		r.Usage = &sum.usage
	}
	if t.done != nil {
		r.State, r.Stop, r.Error = t.done.State, t.done.Stop, t.done.Error
	}
	return r
}
