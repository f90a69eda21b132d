package cli

import (
	"context"

	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/forward"
)

// openGateway makes the gateway for MCP clients. If serve.replica_url is set and other processes can serve the store,
// the ids of its legacy sessions name this process, and requests of sessions of the others are forwarded to them.
func (s *server) openGateway(h *host.Host) (err error) {
	var conf gateway.Config
	c := h.Service().Info().Config
	if peers := h.Service().Storage().State().Peers(); peers != nil && c.Serve.ReplicaURL != "" {
		s.replicas, err = forward.New(forward.Config{Peers: peers, Logger: h.Service().Info().Logger,
			Lease: c.Store.Postgres.Lease})
		if err != nil {
			return err
		}
	}
	if s.replicas != nil {
		conf.NewSession = s.replicas.SessionID
	}
	s.gateway = gateway.New(h, conf)
	return nil
}

// announceReplica tells the other replicas the address of this one, or withdraws it. Without it they answer 404 to
// requests of its sessions, and clients begin new ones.
func (s *server) announceReplica(ctx context.Context, h *host.Host) {
	log, address := h.Service().Info().Logger, h.Service().Info().Config.Serve.ReplicaURL
	switch {
	case s.replicas != nil:
	case address == "":
		return
	case h.Service().Storage().State().Peers() == nil:
		log.Warn("serve.replica_url has no effect: one process serves a store in a file; see store.postgres")
		return
	default:
		log.Warn("serve.replica_url has no effect yet: restart tenon serve")
		return
	}
	if err := h.Service().Storage().State().Peers().Announce(ctx, address); err != nil {
		log.Warn("the other replicas do not know the address of this one yet: requests of its MCP sessions that "+
			"arrive there are answered with 404, and clients initialize again",
			"address", address, "error", err.Error())
		return
	}
	if address == "" {
		log.Info("tenon serve: no address for other replicas any more: serve.replica_url was removed")
		return
	}
	log.Info("tenon serve: other replicas forward requests of MCP sessions here", "address", address)
}
