package servers

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon/transport"
)

// mark is an environment variable. It identifies the processes of one test and their children.
const mark = "TENON_TEST_MARK"

// shapes are kinds of server processes. before is a shell command that runs before the test server, fault is the
// server's fault.
var shapes = []struct{ name, before, fault string }{
	{"plain", "", ""},
	{"deaf", "", "deaf"}, // ignores the end of stdin and SIGTERM
	{"grandchild", "", "grandchild"},
	{"deaf grandchild", "", "grandchild-deaf"},
	{"chain", "", "grandchild-chain"},
	{"forked twice", "(sh -c 'sleep 300' &) ; ", ""},
	{"exits at once", "sleep 300 & ", "exit"},
	{"stderr flood", "sleep 300 & ", "stderr-flood"},
}

// shaped returns the configuration of a server with the nth shape.
func shaped(n int, id string) Config {
	s := shapes[n%len(shapes)]
	args := []string{"--stdio"}
	if s.fault != "" {
		args = append(args, "--fault", s.fault)
	}
	cfg := process(args...)
	cfg.Restart, cfg.InheritEnv, cfg.Env[mark] = RestartNever, []string{"PATH"}, id
	if s.before != "" {
		cfg.Args = append([]string{"-c", s.before + `exec "$0" "$@"`, cfg.Command}, cfg.Args...)
		cfg.Command = "/bin/sh"
	}
	return cfg
}

// TestA10 starts and stops servers of all shapes, and kills hosts that use one. Soon after, there must be no process,
// no zombie and no open file descriptor left. make soak runs 1,000 cycles (TENON_CYCLES); the default is 24.
func TestA10(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes are looked up in /proc")
	}
	cycles := 24
	if n, err := strconv.Atoi(os.Getenv("TENON_CYCLES")); err == nil {
		cycles = n
	}
	var reaper transport.Reaper
	defer reaper.Close()
	id := fmt.Sprintf("a10-%d-%d", os.Getpid(), time.Now().UnixNano())
	cycle := func(n int) {
		// Each shape is used with a server that is stopped and with a host that is killed.
		if n/len(shapes)%3 == 2 {
			killHost(t, n, id)
			return
		}
		s := New("t", shaped(n, id), Options{Reaper: &reaper, LookupEnv: os.LookupEnv})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		_, err := s.List(ctx)
		if exits := shapes[n%len(shapes)].fault == "exit"; (err != nil) != exits {
			t.Errorf("%s: %v", shapes[n%len(shapes)].name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", shapes[n%len(shapes)].name, err)
		}
	}
	cycle(0) // opens descriptors that stay open, such as those of the poller
	fds := descriptors(t)
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := range next {
				cycle(n)
			}
		})
	}
	for n := range cycles {
		next <- n
	}
	close(next)
	wg.Wait()
	var left []string
	var dead, open int
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left, dead, open = marked(t, id), zombies(t), descriptors(t)
		if len(left) == 0 && dead == 0 && open <= fds {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("%d processes are left:\n%s", len(left), strings.Join(left, "\n"))
	}
	if dead > 0 {
		t.Errorf("%d zombies", dead)
	}
	if open > fds {
		t.Errorf("%d descriptors, %d before", open, fds)
	}
}

// killHost starts a process that uses a server of the nth shape, and kills the process once the server runs.
func killHost(t *testing.T, n int, id string) {
	host := exec.Command(os.Args[0], strconv.Itoa(n), id)
	host.Env = append(os.Environ(), role+"=host", raceExit+"=atexit_sleep_ms=0", "GOTRACEBACK=none")
	out, err := host.StdoutPipe()
	if err == nil {
		err = host.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Errorf("%s: the host said %q, %v", shapes[n%len(shapes)].name, line, err)
	}
	_ = host.Process.Kill() // which is waited for
	_ = host.Wait()
}

// playHost is the main function of the process that killHost starts.
func playHost() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(2)
	}
	s := New("t", shaped(n, os.Args[2]), Options{Reaper: new(transport.Reaper), LookupEnv: os.LookupEnv})
	_, _ = s.List(context.Background()) // fails for the shape that exits at once
	fmt.Println("ready")
	time.Sleep(time.Minute)
}

// marked returns the command lines of the processes that have the mark with this id.
func marked(t *testing.T, id string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"="+id+"\x00")) {
			continue // gone, or somebody else's
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline")) // only shown
		found = append(found, filepath.Base(filepath.Dir(f))+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return found
}

// zombies returns the number of child processes that have ended and were not waited for.
func zombies(t *testing.T) (n int) {
	t.Helper()
	for _, pid := range children(t) {
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && bytes.Contains(stat, []byte(") Z ")) {
			n++
		}
	}
	return n
}

// descriptors returns the number of our open file descriptors, or 0 if it is not known.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
