package executor

import (
	"bytes"
	"context"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/policy"
)

// misfit returns the reason why a structured result does not fit the output schema of its tool, or "" if it fits or
// is not checked. raw is the result before secrets are masked.
func (x *Executor) misfit(ctx context.Context, run string, c *agent.ToolCommand, b policy.Block,
	raw *tenon.Result) string {
	if c.Output == "" || raw.IsError || raw.Input != nil || b.Results == policy.ResultsOff {
		return ""
	}
	structured := raw.Structured
	if len(structured) == 0 {
		structured = raw.Declared
	}
	var err error
	if len(structured) == 0 { // a server must send the result that it declares (2025-06-18, "Output Schema")
		err = tenon.Errorf(tenon.CodeInvalid, "the result has no structured content")
	} else {
		err = x.cfg.Rules.CheckResult(ctx, run, c, structured)
	}
	if err == nil {
		return ""
	}
	text := tenon.Visible(x.cfg.Redactor.Text(err.Error()))
	if tenon.ErrorCode(err) != tenon.CodeInvalid {
		x.cfg.Logger.Warn("the result of tool '"+c.Remote+"' is not checked", "run", run, "server", c.Server, "error",
			text)
		return ""
	}
	shown := policy.MaskResult(tenon.VisibleResult(x.cfg.Redactor.Result(&tenon.Result{Structured: structured})),
		b.Redact)
	if !bytes.Equal(structured, shown.Structured) {
		text = "a value is wrong; the details are not shown, because parts of the result are masked"
	}
	x.cfg.Logger.Warn("the result of tool '"+c.Remote+"' does not fit its output schema", "run", run, "server",
		c.Server, "reason", text)
	return text
}

// maskedError masks the members that a rule names in a server's error. They occur in the error's data and in its
// message, which quotes the data.
func maskedError(err error, names []string) error {
	var e *tenon.Error
	if len(names) == 0 || !errors.As(err, &e) {
		return err
	}
	clean := *e
	clean.Message, clean.Data = policy.MaskText(e.Message, names), policy.Mask(e.Data, names)
	return &clean
}

// refusedResult returns the result of a call whose structured result does not fit the schema, if the rules are
// strict.
func refusedResult(c *agent.ToolCommand, misfit string) *tenon.Result {
	return tenon.ErrorResult("the tool '" + c.Name + "' was called, but its result is refused (results: strict): " +
		"it does not fit the output schema of the tool: " + misfit)
}
