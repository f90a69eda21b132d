package cli

import (
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// supervisor is the service manager that started tenon serve and asked to hear of its state: systemd with Type=notify.
// The protocol is in sd_notify(3): datagrams of NAME=value to the socket in NOTIFY_SOCKET. Its zero value
// sends nothing.
type supervisor struct {
	conn  net.Conn
	log   *slog.Logger
	every time.Duration // interval of signs of life, half of the watchdog's time; 0 if there is no watchdog
}

// newSupervisor returns the supervisor that the environment names. A socket that cannot be used is logged: the service
// works without it, until systemd's own timeout ends it with a message.
func newSupervisor(lookup func(string) (string, bool), log *slog.Logger) *supervisor {
	path, _ := lookup("NOTIFY_SOCKET")
	if path == "" {
		return &supervisor{}
	}
	// A path that begins with @ is in Linux's abstract namespace, for package net as for systemd.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		log.Warn("tenon serve: NOTIFY_SOCKET cannot be used; is Type=notify set?", "error", err)
		return &supervisor{}
	}
	return &supervisor{conn: conn, log: log, every: watchdogTime(lookup)}
}

// watchdogTime returns half of the time after which systemd takes the process for stuck, as sd_watchdog_enabled(3)
// recommends.
func watchdogTime(lookup func(string) (string, bool)) time.Duration {
	if pid, ok := lookup("WATCHDOG_PID"); ok && pid != strconv.Itoa(os.Getpid()) {
		return 0 // the variables are meant for another process of the unit
	}
	text, _ := lookup("WATCHDOG_USEC")
	usec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return 0
	}
	return time.Duration(usec) * time.Microsecond / 2
}

// say sends a state. A supervisor that does not listen any more is no reason to stop.
func (s *supervisor) say(state string) {
	if s.conn == nil {
		return
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := s.conn.Write([]byte(state)); err != nil {
		s.log.Warn("tenon serve: the service manager does not listen", "state", state, "error", err)
	}
}

// ticks returns a channel with the times of signs of life, and a function that ends them. Without a watchdog the
// channel is nil, and a select never takes it. The loop that serves receives from it, so that a stuck loop is noticed.
func (s *supervisor) ticks() (<-chan time.Time, func()) {
	if s.every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(s.every)
	return t.C, t.Stop
}

func (s *supervisor) close() {
	if s.conn != nil {
		_ = s.conn.Close() // nothing is buffered
	}
}
