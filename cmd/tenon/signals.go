package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// signalled is the cause of a context that a signal ended. Ctrl-C is a person who
// does not want the answer any more; the other two end the process, and the run
// can go on in another one.
type signalled struct{ sig syscall.Signal }

func (s signalled) Error() string {
	switch s.sig {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGHUP:
		return "ended by SIGHUP"
	}
	return "ended by SIGTERM"
}

// status is what a shell reports of a process that the signal ended.
func (s signalled) status() int { return exitSignalled + int(s.sig) }

// ends reports whether the signal ends the process and leaves its run as it is.
func (s signalled) ends() bool { return s.sig != syscall.SIGINT }

// endedBy returns the signal, other than Ctrl-C, that ended ctx.
func endedBy(ctx context.Context) (signalled, bool) {
	var s signalled
	ok := errors.As(context.Cause(ctx), &s) && s.ends()
	return s, ok
}

// stopped is the error of work that a signal ended. Note says how to go on.
func (s signalled) stopped(note string) error {
	return &tenon.Error{Code: tenon.CodeCancelled, Message: s.Error() + note, Err: s}
}

// interrupted replaces the error of a context that ended by what ended it.
func interrupted(ctx context.Context, err error) error {
	s, ok := endedBy(ctx)
	if ok && errors.As(err, &signalled{}) {
		return err // it says more
	}
	if !ok {
		s.sig = syscall.SIGINT
	}
	return s.stopped("")
}

// How long work may take to come to its end after a signal: until a person at a terminal
// is told how to end it at once, and until it is ended where it stands, beside the grace
// of tenon serve. Nearly all ends in no time; what waits in the kernel, for somebody to
// write into a pipe that it opens or reads, would wait for ever.
const (
	slowToEnd = 3 * time.Second
	atLatest  = 30 * time.Second
)

// signals returns a context that the first signal ends, with a signalled as its
// cause. The second one ends the process where it stands, and so does time. Slow is
// called where the end takes its time after the first one, and grace before that.
func signals(ctx context.Context, slow func(signalled), grace func() time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
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

// awaitSignals takes signals until done, and reports whether one has to end the process
// where it stands, and which.
func awaitSignals(got <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc, slow func(signalled), grace func() time.Duration) (s signalled, now bool) {
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

// endsSlowly tells a person at a terminal how to end at once what takes its time.
func (a *app) endsSlowly(s signalled) {
	if a.errTTY && s.sig == syscall.SIGINT {
		a.note("tenon: still ending; Ctrl-C again ends it at once")
	}
}

var _ error = signalled{}
