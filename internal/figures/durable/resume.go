package durable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// envChild names the directory and the number of runs of the process that
// [Resume] kills.
const envChild = "TENON_DURABLE_CHILD"

// Main has to be the first call of a program that calls [Resume]: if the
// process is the one to be killed, it works until it is.
func Main() {
	v := os.Getenv(envChild)
	if v == "" {
		return
	}
	fmt.Fprintln(os.Stderr, child(v)) // it ends by being killed, else by an error
	os.Exit(1)
}

func child(v string) error {
	n, dir, _ := strings.Cut(v, " ")
	runs, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var busy sync.WaitGroup
	busy.Add(runs)
	p, err := open(ctx, dir, func(ctx context.Context, run string, c engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
		if c.Step != "5" {
			return do(ctx, run, c, emit)
		}
		busy.Done()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		return err
	}
	if err := each(runs, 50, func(i int) error {
		return p.Start(ctx, script{Steps: 10}.spec(fmt.Sprintf("run_%06d", i)))
	}); err != nil {
		return err
	}
	busy.Wait()
	fmt.Println("busy")
	select {} // until it is killed
}

// Resume measures how long it takes until the given number of runs (1,000 for
// the goal), which were in the middle of a step when their process was killed
// with SIGKILL, are at work again: from opening the store until the step of the
// last of them has begun. Dir must be empty, and [Main] must have been called.
func Resume(ctx context.Context, dir string, runs int) (_ time.Duration, err error) {
	if err := prepare(ctx, dir, runs); err != nil {
		return 0, err
	}
	began := time.Now()
	var busy sync.WaitGroup
	busy.Add(runs)
	p, err := open(ctx, dir, func(ctx context.Context, _ string, _ engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		busy.Done()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		return 0, err
	}
	list, err := p.List(ctx, engine.Filter{Resumable: true, Limit: runs + 1})
	if err == nil && len(list) != runs {
		err = fmt.Errorf("%d runs can be resumed, want %d", len(list), runs)
	}
	if err == nil {
		err = each(len(list), 16, func(i int) error {
			return p.Start(ctx, engine.Spec{Run: tenon.Run{ID: list[i].ID}})
		})
	}
	if err != nil {
		_ = p.close() // err says more
		return 0, err
	}
	busy.Wait()
	took := time.Since(began)
	return took, p.close()
}

// prepare has a process bring the runs to the middle of a step, and kills it.
func prepare(ctx context.Context, dir string, runs int) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", envChild, runs, dir))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, rerr := bufio.NewReader(out).ReadString('\n')
	kerr := cmd.Process.Kill()
	_ = cmd.Wait() // it says that the process was killed
	if line != "busy\n" {
		return errors.Join(fmt.Errorf("the process to be killed said %q", line), rerr)
	}
	return kerr
}

// Memory is what a process has of its memory, or what was added to it.
type Memory struct {
	Resident int64 // bytes of resident memory; 0 where the system does not tell
	Live     int64 // bytes of live objects and of the stacks of goroutines
}

// Less is what came to an earlier state.
func (m Memory) Less(before Memory) Memory {
	return Memory{m.Resident - before.Resident, m.Live - before.Live}
}

// MemoryNow frees what is not used and reads what is left.
func MemoryNow() Memory {
	for range 5 { // finalizers let go of more, and stacks shrink by half each time
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f := Memory{Live: int64(m.HeapAlloc + m.StackInuse)}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return f
	}
	for _, line := range strings.Split(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscan(rest, &f.Resident); err == nil {
				f.Resident *= 1024
			}
		}
	}
	return f
}
