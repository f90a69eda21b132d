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

// envChild holds the directory and the number of runs for the process that [Resume] kills.
const envChild = "TENON_DURABLE_CHILD"

// Main must be the first call of a program that calls [Resume]. In the process to be killed, it works until
// the kill.
func Main() {
	v := os.Getenv(envChild)
	if v == "" {
		return
	}
	fmt.Fprintln(os.Stderr, child(v)) // returns only after an error
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
	p, err := open(ctx, dir, func(ctx context.Context, run string, c engine.Attempt,
		emit func(tenon.Event)) ([]tenon.Event, error) {
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
	select {} // wait for the kill
}

// Resume kills a process with the given number of runs (1,000 for the goal) in the middle of a step, with
// SIGKILL. It returns the time until all of them are working again: from opening the store until the last
// step has started. Dir must be empty, and [Main] must have been called.
func Resume(ctx context.Context, dir string, runs int) (_ time.Duration, err error) {
	if err := prepare(ctx, dir, runs); err != nil {
		return 0, err
	}
	began := time.Now()
	var busy sync.WaitGroup
	busy.Add(runs)
	p, err := open(ctx, dir, func(ctx context.Context, _ string, _ engine.Attempt,
		_ func(tenon.Event)) ([]tenon.Event, error) {
		busy.Done()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		return 0, err
	}
	list, err := p.List(ctx, engine.Filter{Resumable: true, Limit: runs + 1})
	if err == nil && len(list) != runs {
		err = fmt.Errorf("%d runs are resumable, want %d", len(list), runs)
	}
	if err == nil {
		err = each(len(list), 16, func(i int) error {
			return p.Start(ctx, engine.Spec{Run: tenon.Run{ID: list[i].ID}})
		})
	}
	if err != nil {
		_ = p.close() // err is more useful
		return 0, err
	}
	busy.Wait()
	took := time.Since(began)
	return took, p.close()
}

// prepare starts a process that brings the runs to the middle of a step, and kills it.
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
	_ = cmd.Wait() // returns an error because the process was killed
	if line != "busy\n" {
		return errors.Join(fmt.Errorf("the process to be killed printed %q", line), rerr)
	}
	return kerr
}

// Memory is the memory of a process, or a difference.
type Memory struct {
	Resident int64 // bytes of resident memory; 0 if unknown
	Live     int64 // bytes of live objects and goroutine stacks
}

// Less returns the growth since an earlier state.
func (m Memory) Less(before Memory) Memory {
	return Memory{m.Resident - before.Resident, m.Live - before.Live}
}

// MemoryNow frees unused memory and returns the current usage.
func MemoryNow() Memory {
	for range 5 { // finalizers release more objects, and stacks shrink by half each time
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
