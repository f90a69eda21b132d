package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// flushInput drops the input of a console that was typed and not read yet.
func flushInput(f *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) // fails only if it is no console
}
