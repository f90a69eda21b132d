package kill

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

const (
	envTakeover     = "TENON_TAKEOVER"      // the schema; set in the process that is killed
	envTakeoverRuns = "TENON_TAKEOVER_RUNS" // number of runs, in both processes
	envTakeoverFile = "TENON_FIGURES"       // file for the measured value; make figures ID=PG.takeover sets it

	takeoverLease = time.Second
	takeoverReady = "all runs are at work"
)

// slowModel answers nothing until it is told to stop, and counts the questions that it works on.
type slowModel struct{ asked atomic.Int64 }

func (*slowModel) Name() string { return "slow/model" }

func (m *slowModel) Generate(ctx context.Context, _ *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		m.asked.Add(1)
		<-ctx.Done()
		yield(tenon.Delta{}, ctx.Err())
	}
}

// replicaHost opens a host on the database of the test.
func replicaHost(ctx context.Context, schema, home string, m *slowModel) (*host.Host, error) {
	return host.Open(ctx, host.Config{Home: home, Models: map[string]tenon.Model{"slow": m}, Model: "slow",
		LookupEnv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Store: config.Store{Postgres: config.Postgres{DSN: tenon.NewSecret(os.Getenv("TENON_POSTGRES")),
			Schema: schema, Lease: takeoverLease, Connections: 8}}}})
}

func takeoverRuns() int {
	if n, err := strconv.Atoi(os.Getenv(envTakeoverRuns)); err == nil {
		return n
	}
	return 100
}

// TestReplicas_TakeoverVictim is the replica that is killed. It begins runs whose model works for minutes, and waits.
func TestReplicas_TakeoverVictim(t *testing.T) {
	schema := os.Getenv(envTakeover)
	if schema == "" {
		t.Skip("TestReplicas_Takeover starts it in a process of its own")
	}
	m, n := &slowModel{}, takeoverRuns()
	h, err := replicaHost(t.Context(), schema, t.TempDir(), m)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for worker := range 16 {
		work.Go(func() {
			for i := worker; i < n; i += 16 {
				if _, err := h.Start(t.Context(), host.Question{Text: fmt.Sprint("question ", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for m.asked.Load() < int64(n) && !t.Failed() {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(takeoverReady)
	select {} // until it is killed
}

// TestReplicas_Takeover kills a replica with many runs at work, all of whose models work for minutes. The other replica
// works on all of them at the same time: none waits for the end of another one. With TENON_FIGURES, the time until then
// is measured: figure PG.takeover is what it takes beyond the lease.
func TestReplicas_Takeover(t *testing.T) {
	if os.Getenv("TENON_POSTGRES") == "" {
		t.Skip("TENON_POSTGRES is not set: make postgres starts a server and sets it")
	}
	n, schema := takeoverRuns(), fmt.Sprintf("takeover_%d", os.Getpid())
	m := &slowModel{}
	home := t.TempDir()
	h, err := replicaHost(t.Context(), schema, home, m)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { h.Service().Supervise(ctx) })

	victim := exec.Command(os.Args[0], "-test.run", "^TestReplicas_TakeoverVictim$")
	victim.Env = append(os.Environ(), envTakeover+"="+schema, envTakeoverRuns+"="+fmt.Sprint(n))
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err == nil {
		err = victim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, ready := bufio.NewScanner(out), false
	for !ready && lines.Scan() {
		ready = strings.Contains(lines.Text(), takeoverReady)
	}
	if err := victim.Process.Kill(); err != nil || !ready {
		t.Fatalf("the replica did not begin its runs: %v", err)
	}
	killed := time.Now()
	if before := m.asked.Load(); before != 0 {
		t.Errorf("%d runs were taken over before the kill", before)
	}
	_ = victim.Wait() // it was killed
	for deadline := killed.Add(2 * time.Minute); m.asked.Load() < int64(n); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d runs are at work", m.asked.Load(), n)
		}
	}
	took := time.Since(killed)
	t.Logf("%d runs at work again %v after the kill, with a lease of %v", n, took, takeoverLease)
	if file := os.Getenv(envTakeoverFile); file != "" {
		b, err := json.Marshal(map[string]float64{"takeover": (took - takeoverLease).Seconds()})
		if err == nil {
			err = os.WriteFile(file, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
