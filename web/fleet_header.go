package web

import "github.com/danielgtaylor/huma/v2"

// FleetHeader names the fleet that an answer of the API is about, for clients that
// tell people whom they spoke to.
const FleetHeader = "Lancefleet-Fleet"

func (s *Server) nameFleet(ctx huma.Context, next func(huma.Context)) {
	ctx.SetHeader(FleetHeader, s.fleet)
	next(ctx)
}
