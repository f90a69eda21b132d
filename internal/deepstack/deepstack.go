// Package deepstack enlarges the stack of a goroutine once, while few functions are on it.
//
// A goroutine begins with a stack of some kilobytes. Each time the stack is full, Go allocates one of twice the size,
// and copies and adjusts the frames of all functions on it. For each frame it reads the tables that the linker wrote
// about its function. They have 18 MB in tenon's binary, and the system maps 64 KiB of them at a time. A command that
// runs for some milliseconds has several goroutines that call deep into the configuration or into SQLite.
// One tenon run mapped 96 such pieces, 6 MB, only to copy stacks. After a call of [Main] or [Work] the stack has room
// for the calls below, and only few frames were copied.
//
// The garbage collector halves a stack of which less than a quarter is used, so a goroutine that lives long does not
// keep the room. The package imports nothing, and belongs to no part of the way from configuration to wire: package
// first calls Main. The goroutines that drive a run, carry out its commands, connect a server, ask for its tools and
// write its listing call Work. The peak of tenon run fell from 43.1 to 41.4 MB with Main and the drivers (medians of 24
// runs in turns), and from 41.0 to 39.8 with the others (16 runs). With 16 KiB it was 42.3 MB, because the stacks were
// full again.
package deepstack

// Sizes of the room that a goroutine needs below the call.
const (
	main = 56 << 10 // the stack then has 64 KiB
	work = 24 << 10 // 32 KiB
)

// Main makes room for the goroutine of a command: reading the configuration, and opening the host and its store.
//
//go:noinline
func Main() {
	var room [main]byte
	touch(room[:])
}

// Work makes room for a goroutine that works on a run.
//
//go:noinline
func Work() {
	var room [work]byte
	touch(room[:])
}

// touch uses the room, so that the compiler keeps it.
//
//go:noinline
func touch(room []byte) { room[0] = 1 }
