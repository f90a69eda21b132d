package executor

import (
	"context"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
)

// openCore is the core of a run that needs more steps after every event.
type openCore struct{}

func (openCore) Apply(tenon.Event) error { return nil }
func (openCore) Next() []tenon.Command   { return nil }

// TestGW_16_AdoptedAgain checks that an engine gets the decisions again. It decides before its first commit; if this
// fails, it begins the run again.
func TestGW_16_AdoptedAgain(t *testing.T) {
	turn, verdict := []tenon.Event{{Kind: "turn"}}, []tenon.Event{{Kind: agent.EventDecided}}
	l := &Light{decided: map[bool][]tenon.Event{true: turn, false: verdict}}
	for range 2 {
		for _, c := range []agent.DecideCommand{{Admit: &agent.Admission{}}, {}} {
			want := l.decided[c.Admit != nil]
			a := engine.Attempt{Command: tenon.Command{Kind: engine.CommandDecide, Data: tenon.EventData(c)}}
			got, err := l.answer(t.Context(), a, nil)
			if err != nil || len(got) != 1 || got[0].Kind != want[0].Kind {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
		}
	}
	if _, err := (&Light{}).answer(t.Context(), engine.Attempt{Command: tenon.Command{Kind: engine.CommandDecide,
		Data: tenon.EventData(agent.DecideCommand{})}}, nil); tenon.ErrorCode(err) != tenon.CodeInternal {
		t.Error(err)
	}
}

// TestGW_16_AdoptionUnderWay tests a light call: a call that is sent before it is stored. The call ends while an engine
// is storing its run, but the run needs more steps. The client must follow the run only after it was stored. Otherwise
// it would get the error that there is no such run.
func TestGW_16_AdoptionUnderWay(t *testing.T) {
	storing, stored := make(chan struct{}), make(chan struct{})
	l := &Light{x: &Executor{}, over: make(chan struct{}), moved: make(chan struct{}), stop: func(error) {},
		cfg: LightConfig{Row: tenon.Run{ID: "run_1"}, Core: openCore{}, Now: time.Now,
			Adopt: func(context.Context) error {
				close(storing)
				<-stored
				return nil
			}}}
	adopted := make(chan error, 1)
	go func() { adopted <- l.Adopt(t.Context()) }()
	<-storing
	if more := l.finish(t.Context(), []tenon.Event{{Kind: agent.EventInput}}, nil); !more {
		t.Fatal("the run needs no more steps")
	}
	select {
	case <-l.moved:
		t.Fatal("the client follows a run that is not stored")
	default:
	}
	close(stored)
	l.follow()
	close(l.over)
	if _, moved, err := l.Wait(t.Context()); !moved || err != nil {
		t.Errorf("moved %t, %v; want a run to follow", moved, err)
	}
	if err := <-adopted; err != nil {
		t.Error(err)
	}
}
