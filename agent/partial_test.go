package agent_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestPartial stops a model call after a part of its answer. It checks the conversation with which the next question
// continues.
func TestPartial(t *testing.T) {
	part := agent.Partial{Text: "half an", Thinking: "hm"}
	interrupted := tenon.Event{Step: "1", Kind: tenon.EventInterrupted, Attempt: 1, Data: data(part)}
	failed := tenon.Event{Step: "1", Kind: agent.EventFailed, Attempt: 1, Data: data(agent.Failure{
		Error: tenon.Errorf(tenon.CodeModel, "cut off"), Partial: &part})}
	cancel := tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{Reason: "enough"})}
	retry := tenon.Event{Kind: tenon.EventRetry}
	for name, tt := range map[string]struct {
		events []tenon.Event // after the model call has begun
		want   []string      // the conversation at the end
	}{
		"UX-8_cancelled":           {[]tenon.Event{cancel, interrupted}, []string{"user q", "assistant half an (partial)"}},
		"UX-8_failed":              {[]tenon.Event{failed}, []string{"user q", "assistant half an (partial)"}},
		"UX-8_answered_again":      {[]tenon.Event{interrupted}, []string{"user q", "assistant whole"}},
		"UX-8_only_reasoning":      {[]tenon.Event{cancel, {Step: "1", Kind: tenon.EventInterrupted, Attempt: 1, Data: data(agent.Partial{Thinking: "hm"})}}, []string{"user q"}},
		"UX-8_journal_of_0.9":      {[]tenon.Event{cancel, {Step: "1", Kind: tenon.EventInterrupted, Attempt: 1}}, []string{"user q"}},
		"UX-8_cancelled_at_resume": {[]tenon.Event{interrupted, cancel}, []string{"user q", "assistant half an (partial)"}},
		"UX-8_retried": {[]tenon.Event{failed, {}, retry}, []string{"user q", "assistant half an (partial)",
			"user Your answer was cut off. Give the whole answer.", "assistant whole"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t, agent.Spec{Question: "q"}, script(says("whole")))
			d.apply(tenon.Event{Step: "1", Kind: tenon.EventStarted, Attempt: 1, Data: data(tenon.StartedData{Kind: agent.CommandModel, Idempotent: true})})
			d.attempt["1"] = 1
			for _, e := range tt.events {
				if e.Kind == "" {
					d.run()
					d.done = nil
					continue
				}
				d.apply(e)
			}
			d.run()
			if diff := sameTexts(d.core.Messages(), tt.want); diff != "" {
				t.Error(diff)
			}
			next := agent.New(agent.Spec{Question: "and now"}, d.core)
			if diff := sameTexts(next.Prompt().Messages, append(tt.want, "user and now")); diff != "" {
				t.Errorf("the next question: %s", diff)
			}
		})
	}
}

// sameTexts compares the roles and texts of messages with lines. It returns the difference.
func sameTexts(list []*tenon.Message, want []string) string {
	var got []string
	for _, m := range list {
		line := string(m.Role) + " " + m.Text()
		if m.Partial {
			line += " (partial)"
		}
		got = append(got, line)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		return "got " + string(a) + ", want " + string(b)
	}
	return ""
}

// TestPartialTime closes a process during a model call. The time until another process resumes the run does not count
// as time of the run (UX-8).
func TestPartialTime(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", Timeout: time.Minute}, nil)
	start := tenon.Event{Step: "1", Kind: tenon.EventStarted, Attempt: 1, Data: data(tenon.StartedData{Kind: agent.CommandModel, Idempotent: true})}
	d.apply(start)
	d.now = d.now.Add(20 * time.Second)
	d.apply(tenon.Event{Step: "1", Kind: tenon.EventInterrupted, Attempt: 1, Data: data(agent.Partial{Text: "half"})})
	d.now = d.now.Add(time.Hour)
	start.Attempt = 2
	d.apply(start)
	d.apply(tenon.Event{Step: "1", Kind: tenon.EventInterrupted, Attempt: 2})
	left := d.core.Prompt().Timeout
	if left < 39*time.Second || left > 40*time.Second {
		t.Errorf("%s are left of a minute, want about 40 s", left)
	}
}
