package host

import (
	"cmp"
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

func (h sessionsHandle) Compact(ctx context.Context, session, model string) (tenon.Run, error) {
	var run tenon.Run
	err := behindOthers(func() error {
		var err error
		run, err = h.compactAtEnd(ctx, session, model)
		return err
	})
	return run, err
}

// compactAtEnd begins a run at the present end of the session, as [Host.startAtEnd] does.
func (h sessionsHandle) compactAtEnd(ctx context.Context, session, model string) (tenon.Run, error) {
	ctx = store.OwnOnly(ctx)
	s, err := h.host.Sessions().Get(ctx, session)
	if err != nil {
		return tenon.Run{}, err
	}
	if s.Head == "" {
		return tenon.Run{}, tenon.Errorf(tenon.CodeInvalid, "session %s has no conversation yet", s.ID)
	}
	parent, err := h.host.store.Run(ctx, s.Head)
	if err == nil {
		err = atRest(s, parent)
	}
	if err != nil {
		return tenon.Run{}, err
	}
	a, err := h.host.config.Agent(parent.Agent)
	if err != nil { // the agent is no longer configured: use the model of its last run
		a = agent.Config{Model: parent.Model}.WithDefaults()
	}
	spec := agent.Spec{Agent: parent.Agent, Task: agent.TaskCompact, Policy: h.host.ruleset().Digest, MaxTurns: 1,
		Timeout: a.Limits.RunTimeout, Compaction: a.Compaction}
	model = cmp.Or(model, a.Compaction.Model)
	if spec.Model, err = h.host.models.choose(ctx, model, parent.Model); err != nil {
		return tenon.Run{}, err
	}
	spec.Compaction.Model = ""
	run := tenon.Run{ID: tenon.NewID("run", h.host.now()), Session: s.ID, Principal: s.Principal, Parent: parent.ID,
		ParentSeq: cmp.Or(s.HeadSeq, parent.Seq), Core: agent.Version, Agent: parent.Agent,
		Model: spec.Model, Title: "/compact", State: tenon.RunWorking, Created: h.host.now(), Updated: h.host.now()}
	return run, h.host.start(ctx, engine.Spec{Run: run, Data: encode(spec), Fresh: true}, nil)
}
