package record_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/record"
)

// clock is a toolset with one tool.
type clock struct{}

func (clock) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Server: "clock", Remote: "now"}}, nil
}

func (clock) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("half past nine")}}, nil
}

// The example records a toolset and replays it from the cassette.
func Example() {
	dir, err := os.MkdirTemp("", "cassette-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, call := context.Background(), tenon.Call{Tool: "now", Arguments: json.RawMessage(`{"zone":"Europe/Bern"}`)}

	rec, err := record.NewRecorder(record.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = rec.Toolset("clock", clock{}).Call(ctx, call)
	fmt.Println(err, rec.Close())

	player, err := record.NewPlayer(record.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	replayed := player.Toolset("clock")
	r, err := replayed.Call(ctx, call)
	fmt.Println(r.Text(), err)
	call.Arguments = json.RawMessage(`{"zone":"Asia/Tokyo"}`)
	_, err = replayed.Call(ctx, call)
	fmt.Println(tenon.ErrorCode(err), player.Close() != nil)
	// Output:
	// <nil> <nil>
	// half past nine <nil>
	// conflict true
}
