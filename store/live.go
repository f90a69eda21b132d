package store

import (
	"context"

	"github.com/tenonhq/tenon"
)

// Live carries live events, such as pieces of text, from the process that works on a run to processes that follow it.
// Live events are not stored, can be lost, and are never needed. Live is optional: processes on one machine pass live
// events in another way.
//
//	follower: FollowLive ─► owner: Wake, Followed, PublishLive ─► follower: each
type Live interface {
	// FollowLive reports to the owner of a run that this process follows it, and calls each with its live events, in
	// order, until ctx ends. It also works if the run gets another owner.
	FollowLive(ctx context.Context, run string, each func(tenon.Event))
	// Followed returns the followers, in other processes, of the runs that this process works on.
	Followed(ctx context.Context) ([]LiveFollower, error)
	// Wake returns a channel that receives after a process has begun to follow a run. A hint may be lost.
	Wake() <-chan struct{}
	// PublishLive passes live events to followers.
	PublishLive(ctx context.Context, list []LiveEvents) error
}

// LiveFollower is one call of FollowLive in another process.
type LiveFollower struct {
	Run     string
	Process string
	N       int64 // distinguishes the calls of a process
}

// LiveEvents are live events of a run for a follower.
type LiveEvents struct {
	LiveFollower
	Events []tenon.Event
}
