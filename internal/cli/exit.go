package cli

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

// exits maps error codes to exit statuses. direct is the status if the error comes from a tool that tenon tools call
// called.
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

// exitMeanings is the help text of each status.
var exitMeanings = []struct {
	status int
	text   string
}{
	{exitOK, "success"},
	{exitFailed, "the attempt failed"},
	{exitUsage, "the command line or the configuration is wrong; nothing was started"},
	{exitAuth, "a server or model requires credentials"},
	{exitUnreachable, "a server or model cannot be reached or started"},
	{exitTool, "the tool reported an error (tools call; in a run the model receives the error)"},
	{exitLimit, "a limit was reached, such as limits.max_turns"},
	{exitDenied, "a rule or a person denied it"},
	{exitWaiting, "the run waits for a decision: tenon approvals list shows it"},
	{exitSignalled + int(syscall.SIGHUP), "ended by SIGHUP; tenon runs resume continues the run"},
	{exitInterrupted, "interrupted by Ctrl-C; the run was cancelled"},
	{exitSignalled + int(syscall.SIGPIPE), "the reader of stdout has closed its pipe"},
	{exitSignalled + int(syscall.SIGTERM), "ended by SIGTERM; tenon runs resume continues the run"},
}

// reported is an error that the verb has printed already. It only sets the exit status.
type reported struct{ err error }

func (r reported) Error() string { return r.err.Error() }
func (r reported) Unwrap() error { return r.err }

// direct is an error of a tool that a person called.
type direct struct{ err error }

func (d direct) Error() string { return d.err.Error() }
func (d direct) Unwrap() error { return d.err }

// begun is the error of a workflow run that had begun. Its exit status is therefore never exitUsage.
type begun struct{ err error }

func (b begun) Error() string { return b.err.Error() }
func (b begun) Unwrap() error { return b.err }

// plain is an error that is printed without the prefix "tenon: ".
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
	if u := (unread{}); errors.As(err, &u) {
		return exitSignalled + int(syscall.SIGPIPE) // as of a process that does not ignore the signal
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

// errorCode is tenon.ErrorCode, except that a cancelled context has the code cancelled.
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
	b.WriteString("\nThe codes in {\"error\":{\"code\",\"message\"}}, which -o json prints on failure, lead to " +
		"them:\n\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "  %-16s %3d", e.code, e.exit)
		if e.direct != e.exit {
			fmt.Fprintf(&b, "  (%d for tools call)", e.direct)
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
