package host

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
)

// Answer is the result of a run that [Host.Ask] followed to its end.
type Answer struct {
	Text  string          // the answer of the agent
	Value json.RawMessage // the answer as JSON, if [Question.Output] or the agent demands a form; else nil
	Usage tenon.Usage     // tokens of the model calls that reported them
	Cost  *tenon.USD      // nil: a price is not known
	Calls []view.Call     // the tool calls, in order
	// Citations are the sources of Text. Media are generated images and audio; their bytes are artifacts of the run.
	Citations []tenon.Citation
	Media     []view.Media
	Logprobs  []tenon.TokenProb // probabilities of the tokens of Text, if the settings ask for them
	Run       tenon.Run         // its session continues the conversation: see [Question.Session]
}

// Ask asks the default agent a question and waits for the answer. See [Ask], which takes a whole [Question].
func (h *Host) Ask(ctx context.Context, text string) (Answer, error) {
	return Ask(ctx, h, Question{Text: text})
}

// Ask asks a question and waits for the answer. [Config.Approve] decides the calls for which the run waits. Errors: as
// [Host.Stream]; the error of a failed run; cancelled; limit; waiting (without Approve, the run waits for a decision).
// If the run was started, Answer.Run is the run. After the run has ended or waits, the answer has all that is known of
// it.
//
// If ctx ends first, Ask returns and the run continues in the background. With [Question.BindContext] the run is
// cancelled, and Ask returns when it has ended.
func Ask(ctx context.Context, h *Host, q Question) (a Answer, err error) {
	id, last := "", ""
	var broke error // the run was not followed to its end
	for e, err := range h.Stream(ctx, q) {
		if err != nil {
			broke = err
			break
		}
		id, last = e.Run, e.Kind
	}
	if id == "" {
		return a, broke
	}
	ctx = context.WithoutCancel(ctx)
	a.Run, err = h.Runs().Get(ctx, id)
	if broke != nil {
		return a, broke
	}
	if err != nil {
		return a, err
	}
	r, err := h.Runs().Open(id).Report(ctx)
	if err != nil {
		return a, err
	}
	a.Text, a.Usage, a.Cost, a.Calls = r.Answer, r.Tokens(), r.Cost, r.ToolCalls
	a.Citations, a.Media, a.Logprobs = r.Citations, r.Media, r.Logprobs
	if len(r.Output) > 0 {
		a.Value = r.Output
	}
	switch {
	case last == engine.EventWaiting:
		return a, tenon.Errorf(tenon.CodeWaiting, "run %s waits for a decision; list, decide and resume it, or set "+
			"Config.Approve", id)
	case r.Error != nil:
		return a, r.Error
	case r.State == tenon.RunCancelled:
		return a, tenon.Errorf(tenon.CodeCancelled, "run %s was cancelled", id)
	}
	return a, nil
}

// AskFor asks a question whose answer is a T. The schema of the answer is inferred from T, a struct, as
// [NewFunction] infers arguments; it replaces [Question.Output]. The model gets two more attempts if its answer does
// not fit. Errors: as [Ask]; invalid (T has no schema).
func AskFor[T any](ctx context.Context, h *Host, q Question) (value T, a Answer, err error) {
	if q.Output, err = catalog.Infer(reflect.TypeFor[T]()); err != nil {
		return value, a, err
	}
	if a, err = Ask(ctx, h, q); err != nil {
		return value, a, err
	}
	if err := json.Unmarshal(a.Value, &value); err != nil {
		return value, a, tenon.Errorf(tenon.CodeInvalid, "the answer fits the schema of %T and cannot be decoded: %w",
			value, err)
	}
	return value, a, nil
}
