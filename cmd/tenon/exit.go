package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/tenonhq/tenon"
)

// The exit statuses. They are a contract: scripts test for them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitAuth        = 3
	exitUnreachable = 4
	exitTool        = 5
	exitLimit       = 6
	exitDenied      = 7
	exitWaiting     = 8
	exitInterrupted = 130
	exitSignalled   = 128 // plus the number of the signal
)

// exits is the one table from error codes to exit statuses. Direct is the status
// where a person's own tools call got as far as the tool.
var exits = []struct {
	code         tenon.Code
	exit, direct int
}{
	{tenon.CodeInvalid, exitUsage, exitUsage},
	{tenon.CodeConfig, exitUsage, exitUsage},
	{tenon.CodeNotFound, exitUsage, exitUsage},
	{tenon.CodeConflict, exitFailed, exitFailed},
	{tenon.CodeAuth, exitAuth, exitAuth},
	{tenon.CodeDenied, exitDenied, exitDenied},
	{tenon.CodeUnreachable, exitUnreachable, exitUnreachable},
	{tenon.CodeTimeout, exitUnreachable, exitTool},
	{tenon.CodeProtocol, exitUnreachable, exitTool},
	{tenon.CodeTooLarge, exitFailed, exitTool},
	{tenon.CodeTool, exitTool, exitTool},
	{tenon.CodeUnknown, exitFailed, exitTool},
	{tenon.CodeModel, exitFailed, exitFailed},
	{tenon.CodeRateLimited, exitUnreachable, exitUnreachable},
	{tenon.CodeLimit, exitLimit, exitLimit},
	{tenon.CodeWaiting, exitWaiting, exitWaiting},
	{tenon.CodeStore, exitFailed, exitFailed},
	{tenon.CodeCancelled, exitInterrupted, exitInterrupted},
	{tenon.CodeInternal, exitFailed, exitFailed},
}

// exitMeanings is what help says about each status.
var exitMeanings = []struct {
	status int
	text   string
}{
	{exitOK, "all was done"},
	{exitFailed, "it was tried and came to nothing"},
	{exitUsage, "the command line or the configuration is wrong; nothing was started"},
	{exitAuth, "a server or model wants credentials"},
	{exitUnreachable, "a server or model cannot be reached or started"},
	{exitTool, "the tool reported an error (tools call; inside a run a tool's error is told to the model)"},
	{exitLimit, "a limit was reached, such as limits.max_turns"},
	{exitDenied, "a rule or a person said no"},
	{exitWaiting, "the run waits for a decision: tenon approvals list shows it"},
	{exitSignalled + int(syscall.SIGHUP), "ended by SIGHUP; tenon runs resume goes on with the run"},
	{exitInterrupted, "interrupted by Ctrl-C; the run was cancelled"},
	{exitSignalled + int(syscall.SIGTERM), "ended by SIGTERM; tenon runs resume goes on with the run"},
}

// reported is an error that the verb has told of already: only its status is left.
type reported struct{ err error }

func (r reported) Error() string { return r.err.Error() }
func (r reported) Unwrap() error { return r.err }

// direct is an error of a tool that a person called.
type direct struct{ err error }

func (d direct) Error() string { return d.err.Error() }
func (d direct) Unwrap() error { return d.err }

// begun is how the run of a workflow failed: it had been begun, so that its status is never
// that of a command line or a configuration that is wrong.
type begun struct{ err error }

func (b begun) Error() string { return b.err.Error() }
func (b begun) Unwrap() error { return b.err }

// plain is an error whose text stands alone, without "tenon: " before it.
type plain struct{ err error }

func (p plain) Error() string { return p.err.Error() }
func (p plain) Unwrap() error { return p.err }

// exitStatus maps an error to the status of the process.
func exitStatus(err error) int {
	if err == nil {
		return exitOK
	}
	if s := (signalled{}); errors.As(err, &s) {
		return s.status()
	}
	code := errorCode(err)
	for _, e := range exits {
		if e.code == code {
			if d := (direct{}); errors.As(err, &d) {
				return e.direct
			}
			if b := (begun{}); e.exit == exitUsage && errors.As(err, &b) {
				return exitFailed
			}
			return e.exit
		}
	}
	return exitFailed
}

// errorCode is tenon.ErrorCode, and cancelled for a context that ended.
func errorCode(err error) tenon.Code {
	code := tenon.ErrorCode(err)
	if code == tenon.CodeInternal && errors.Is(err, context.Canceled) {
		return tenon.CodeCancelled
	}
	return code
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("Every verb ends with one of these statuses.\n\n")
	for _, m := range exitMeanings {
		fmt.Fprintf(&b, "  %3d  %s\n", m.status, m.text)
	}
	b.WriteString("\nThe codes in {\"error\":{\"code\",\"message\"}}, which -o json prints on failure, lead to them:\n\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "  %-16s %3d", e.code, e.exit)
		if e.direct != e.exit {
			fmt.Fprintf(&b, "  (%d for tools call)", e.direct)
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
