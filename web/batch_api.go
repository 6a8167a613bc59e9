package web

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

type batchInput struct {
	DryRun bool `query:"dry_run" doc:"Say what it would do, and do nothing"`
	Body   BatchRequest
}

// batchOutput is a plan (200), or what was started (202).
type batchOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

func (s *Server) addBatch(ctx context.Context, in *batchInput) (*batchOutput, error) {
	if in.DryRun {
		m := s.feed.moment()
		if m.view == nil {
			return nil, notLoaded(m)
		}
		plan, err := s.planBatch(ctx, m, in.Body)
		if err != nil {
			return nil, err
		}
		return &batchOutput{Status: http.StatusOK, Body: plan}, nil
	}
	started, err := s.startBatch(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	if started.Started == 0 && len(started.Failed) == 0 { // there is no batch to follow
		return nil, refuse(started.nothing())
	}
	return &batchOutput{Status: http.StatusAccepted, Location: started.Location, Body: started}, nil
}

type batchStatusInput struct {
	ID string `path:"id" doc:"As starting it has told"`
}

type batchStatusOutput struct {
	Body Batch
}

func (s *Server) getBatch(ctx context.Context, in *batchStatusInput) (*batchStatusOutput, error) {
	b, err := s.batch(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &batchStatusOutput{Body: b}, nil
}

// routeBatches registers maintenance of many at once.
func (s *Server) routeBatches(api huma.API, op func(method, path, id, summary string) huma.Operation) {
	start := op(http.MethodPost, "/batches", "add-batch", "Optimize or retire many: those named, or all that a query finds")
	start.DefaultStatus = http.StatusAccepted
	handle(s, Operate, start, s.addBatch, api)
	handle(s, Read, op(http.MethodGet, "/batches/{id}", "get-batch", "What became of a batch so far"), s.getBatch, api)
}
