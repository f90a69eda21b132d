package host

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tenonhq/tenon/servers"
)

// maxNotices bounds the notifications that wait for [Config.Notify].
const maxNotices = 256

// notices delivers the notifications of servers to the program, one after the other. Servers never wait for the
// program: if it is too slow, notifications are dropped and counted in the log.
type notices struct {
	f       atomic.Pointer[func(servers.Notification)] // of the latest host
	log     *slog.Logger
	queue   chan servers.Notification
	dropped atomic.Int64
	once    sync.Once
	stop    chan struct{}
	done    chan struct{}
}

func newNotices(log *slog.Logger) *notices {
	n := &notices{log: log, queue: make(chan servers.Notification, maxNotices), stop: make(chan struct{}),
		done: make(chan struct{})}
	go n.deliver()
	return n
}

// put is [servers.Options].Notify.
func (n *notices) put(notice servers.Notification) {
	select {
	case n.queue <- notice:
	default:
		n.dropped.Add(1)
	}
}

// deliver calls the program's function until close.
func (n *notices) deliver() {
	defer close(n.done)
	for {
		select {
		case notice := <-n.queue:
			if lost := n.dropped.Swap(0); lost > 0 {
				n.log.Warn("notifications of servers were dropped: the program's function Notify is too slow",
					"dropped", lost)
			}
			n.call(notice)
		case <-n.stop:
			return
		}
	}
}

func (n *notices) call(notice servers.Notification) {
	_ = guardedCall(n.log, "Notify", func() error { (*n.f.Load())(notice); return nil }) // which has logged it
}

// close ends the delivery and waits for a call under way.
func (n *notices) close() {
	n.once.Do(func() { close(n.stop) })
	<-n.done
}

// notify returns the function that receives the notifications of servers, or nil if [Config.Notify] is nil.
func (h *Host) notify() func(servers.Notification) {
	if h.cfg.Notify == nil {
		return nil
	}
	return h.serverPool.noticesFor(h.cfg.Notify, h.log).put
}

// noticesFor directs the notifications of all servers to a function.
func (f *serverPool) noticesFor(notify func(servers.Notification), log *slog.Logger) *notices {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.notices == nil {
		f.notices = newNotices(log)
	}
	f.notices.f.Store(&notify)
	return f.notices
}
