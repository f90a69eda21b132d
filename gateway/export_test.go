package gateway

// Followers counts the clients that wait for parked calls.
func Followers(g *Gateway) (n int) {
	g.parked.mu.Lock()
	defer g.parked.mu.Unlock()
	for _, c := range g.parked.list {
		n += c.followers
	}
	return n
}
