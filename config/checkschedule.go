package config

import (
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/schedule"
)

// schedule checks an entry of schedules.
func (k *checker) schedule(p string, s schedule.Config) {
	if _, err := schedule.Parse(s.Cron, s.Timezone); err != nil && !k.failedUnder(p) {
		at := p + ".cron"
		if _, timeErr := schedule.Parse("@daily", s.Timezone); timeErr != nil {
			at = p + ".timezone"
		}
		text := err.Error()
		if e, ok := errors.AsType[*tenon.Error](err); ok {
			text = e.Message
		}
		k.bad(at, "", "%s", text)
	}
	switch {
	case k.has(p+".question") && k.has(p+".workflow"):
		k.bad(p+".workflow", "", "'question' and 'workflow' together: a schedule starts one of them")
	case s.Question == "" && s.Workflow == "":
		k.bad(p, "write question, for an agent, or workflow", "the schedule starts nothing")
	case s.Workflow != "" && k.has(p+".agent"):
		k.bad(p+".agent", "", "'agent' has no effect on a workflow")
	case s.Workflow == "" && k.has(p+".arguments"):
		k.bad(p+".arguments", "", "'arguments' belong to 'workflow', which is missing")
	}
	if t, ok := k.c.Tools[s.Workflow]; s.Workflow != "" && (!ok || t.Kind != tenon.KindWorkflow) {
		k.bad(p+".workflow", "name an entry of tools with kind: workflow", "no workflow '%s'", s.Workflow)
	}
	if _, ok := k.c.Agents[s.Agent]; s.Agent != "" && !ok {
		k.noReference(p+".agent", "agents", "agent", s.Agent)
	}
}
