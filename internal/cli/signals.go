package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// interruptedText is the error of work that Ctrl-C ended.
const interruptedText = "interrupted"

// signalled is the error of a process that a signal ends. Another process can resume its run.
type signalled struct{ sig syscall.Signal }

func (s signalled) Error() string {
	switch s.sig {
	case syscall.SIGINT:
		return interruptedText
	case syscall.SIGHUP:
		return "ended by SIGHUP"
	}
	return "ended by SIGTERM"
}

// status is the exit status that a shell reports for a process that the signal ended.
func (s signalled) status() int { return exitSignalled + int(s.sig) }

// ends reports whether the signal ends the process and leaves its run as it is.
func (s signalled) ends() bool { return s.sig != syscall.SIGINT }

// endedBy returns the signal, other than Ctrl-C, that ended ctx.
func endedBy(ctx context.Context) (signalled, bool) {
	var s signalled
	ok := errors.As(context.Cause(ctx), &s) && s.ends()
	return s, ok
}

// stopped is the error of work that a signal ended. The note says how to continue.
func (s signalled) stopped(note string) error {
	return &tenon.Error{Code: tenon.CodeCancelled, Message: s.Error() + note, Err: s}
}

// interrupted replaces the error of a cancelled context by the cause.
func interrupted(ctx context.Context, err error) error {
	s, ok := endedBy(ctx)
	if ok && errors.As(err, &signalled{}) {
		return err // the error has more detail
	}
	if !ok {
		s.sig = syscall.SIGINT
	}
	return s.stopped("")
}

// The times that work has to end after a signal, in addition to the grace of tenon serve. After slowToEnd, a message on
// the terminal says how to end tenon at once. After atLatest the process exits. Nearly all work ends at once, but
// opening or reading a pipe that nobody writes to would block forever.
const (
	slowToEnd = 3 * time.Second
	atLatest  = 30 * time.Second
)

// signals returns a context that the first signal ends, with a signalled as its cause. A second signal, or the end of
// the time, exits the process at once. slow is called if the work has not ended some time after the first signal and
// grace.
func signals(ctx context.Context, slow func(signalled), grace func() time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		list = append(list, syscall.SIGHUP)
	}
	got, done, over := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(got, list...)
	go func() {
		defer close(over)
		if s, now := awaitSignals(got, done, cancel, slow, grace); now {
			os.Exit(s.status())
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		<-over
		cancel(nil)
	}
}

// awaitSignals handles signals until done is closed. It reports whether the process must exit at once, and for which
// signal.
func awaitSignals(got <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc, slow func(signalled),
	grace func() time.Duration) (s signalled, now bool) {
	var late <-chan time.Time
	told := false
	for {
		select {
		case <-done:
			return s, false
		case <-late:
			if told {
				return s, true
			}
			slow(s)
			told, late = true, time.After(atLatest-slowToEnd)
		case sig := <-got:
			again := late != nil
			s = signalled{syscall.SIGTERM}
			if known, ok := sig.(syscall.Signal); ok {
				s.sig = known
			}
			if again {
				return s, true
			}
			cancel(s)
			late = time.After(slowToEnd + grace())
		}
	}
}

// endsSlowly prints on a terminal how to end a slow process at once.
func (a *app) endsSlowly(s signalled) {
	if a.errTTY && s.sig == syscall.SIGINT {
		a.note("tenon: still ending; Ctrl-C again ends it at once")
	}
}

var _ error = signalled{}
