package temporal

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/enginetest"
)

func done(_ context.Context, _ string, c engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
	return enginetest.Result(`"ok"`), nil
}

// history is what a run costs in Temporal.
type history struct{ activities, events, bytes int }

// historyOf waits for the end of a run's workflow and reads its history.
func (p *process) historyOf(t *testing.T, run string) (h history, all []*historypb.HistoryEvent) {
	t.Helper()
	id := p.place.queue + "." + run
	if err := p.cluster.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
		t.Fatalf("the workflow of run %s: %v", run, err)
	}
	it := p.cluster.client.GetWorkflowHistory(t.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		h.events++
		h.bytes += proto.Size(e)
		if e.EventType == enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			h.activities++
		}
	}
	return h, all
}

// finish starts a run again until it has ended.
func (p *process) finish(t *testing.T, run string) {
	t.Helper()
	if err := p.Start(t.Context(), engine.Spec{Run: tenon.Run{ID: run}}); err != nil {
		t.Fatal(err)
	}
	for _, err := range p.Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistory bounds what runs cost in Temporal: TEMPORAL.run. A run with one decided call needs two activities, and a
// thousand turns cost no more than one.
func TestHistory(t *testing.T) {
	pl := newPlace(t)
	p := pl.open(t, enginetest.Setup{Do: done})
	enginetest.Rested(t, p, "decided")
	if _, err := p.Signal(t.Context(), "decided", engine.Signal{ID: "s", Kind: enginetest.KindGo, Step: "1"}); err != nil {
		t.Fatal(err)
	}
	p.finish(t, "decided")
	decided, _ := p.historyOf(t, "decided")
	t.Logf("one decided call: %d activities, %d events, %d bytes", decided.activities, decided.events, decided.bytes)
	if decided.activities > 3 || decided.events > 60 {
		t.Errorf("one decided call costs %+v, want at most 3 activities and 60 events", decided)
	}
	if err := p.Start(t.Context(), enginetest.Calls(1000, true).Spec("long", "")); err != nil {
		t.Fatal(err)
	}
	p.finish(t, "long")
	h, _ := p.historyOf(t, "long")
	t.Logf("1,000 turns: %d activities, %d events, %d bytes", h.activities, h.events, h.bytes)
	if h.activities > 3 || h.events > 60 || h.bytes > 200_000 {
		t.Errorf("1,000 turns cost %+v", h)
	}
	if file := os.Getenv("TENON_FIGURES"); file != "" { // make figures ID=TEMPORAL
		values, err := json.Marshal(map[string]float64{"activities": float64(decided.activities),
			"events": float64(decided.events), "history": float64(h.bytes) / 1000})
		if err == nil {
			err = os.WriteFile(file, values, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistory_secret runs with a codec and looks for the id of the run in all payloads.
func TestHistory_secret(t *testing.T) {
	pl := newPlace(t)
	pl.key = make([]byte, 32)
	p := pl.open(t, enginetest.Setup{Do: done})
	if err := p.Start(t.Context(), enginetest.Calls(1, true).Spec("r", "")); err != nil {
		t.Fatal(err)
	}
	p.finish(t, "r")
	_, all := p.historyOf(t, "r")
	for _, e := range all {
		if in := e.GetWorkflowExecutionStartedEventAttributes().GetInput(); in != nil &&
			string(in.Payloads[0].Metadata["encoding"]) != encoding {
			t.Errorf("a plain payload: %s", in.Payloads[0].Data)
		}
	}
}

// TestHalted stops a run by an error of Do. The workflow tries again by itself, without Start.
func TestHalted(t *testing.T) {
	pl := newPlace(t)
	p := pl.open(t, enginetest.Setup{Do: func(_ context.Context, _ string, c engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
		if c.Attempt == 1 {
			return nil, tenon.Errorf(tenon.CodeInternal, "no idea")
		}
		return enginetest.Result(`"ok"`), nil
	}})
	if err := p.Start(t.Context(), enginetest.Calls(1, true).Spec("r", "")); err != nil {
		t.Fatal(err)
	}
	if h, _ := p.historyOf(t, "r"); h.activities != 2 {
		t.Errorf("%d activities, want 2", h.activities)
	}
	if row, err := p.store.Run(t.Context(), "r"); err != nil || row.State != tenon.RunCompleted {
		t.Errorf("row %+v, %v", row, err)
	}
}

// TestCancelledInTemporal cancels the workflow of a working run and of one at rest. Both runs are cancelled.
func TestCancelledInTemporal(t *testing.T) {
	pl := newPlace(t)
	begun := make(chan struct{}, 1)
	p := pl.open(t, enginetest.Setup{Do: func(ctx context.Context, _ string, _ engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if err := p.Start(t.Context(), enginetest.Calls(1, false).Spec("working", "")); err != nil {
		t.Fatal(err)
	}
	<-begun
	enginetest.Rested(t, p, "rested")
	for _, run := range []string{"working", "rested"} {
		if err := p.cluster.client.CancelWorkflow(t.Context(), pl.queue+"."+run, ""); err != nil {
			t.Fatal(err)
		}
		p.historyOf(t, run)
		if row, err := p.store.Run(t.Context(), run); err != nil || row.State != tenon.RunCancelled {
			t.Errorf("%s: row %+v, %v", run, row, err)
		}
	}
}

// TestWake lets a wait expire: the timer of the workflow wakes the run.
func TestWake(t *testing.T) {
	pl := newPlace(t)
	p := pl.open(t, enginetest.Setup{Do: done})
	script := enginetest.Script{Stages: [][]enginetest.Step{
		{{ID: "1", Kind: tenon.CommandWait, After: 2 * time.Second}}, {{ID: "2"}}}}
	if err := p.Start(t.Context(), script.Spec("r", "")); err != nil {
		t.Fatal(err)
	}
	p.historyOf(t, "r")
	if row, err := p.store.Run(t.Context(), "r"); err != nil || row.State != tenon.RunCompleted {
		t.Errorf("row %+v, %v", row, err)
	}
}
