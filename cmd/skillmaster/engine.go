package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/policy/tinker"
	"skillmaster/policy/transformer"
	"skillmaster/store"
	"skillmaster/train"
)

// engine is the embedded transformer of a run, with the way it reads and writes.
type engine struct {
	tokenizer *chat.Tokenizer
	template  chat.Template
	learner   *transformer.Learner
	served    policy.Policy                                     // a server's, in place of all of the above
	distant   *tinker.Learner                                   // weights on a server, in place of learner
	again     func(ctx context.Context) (policy.Learner, error) // another learner that has learnt nothing yet
	shut      func() error                                      // nil: there is nothing to close
}

// close lets go of what is held on servers.
func (e *engine) close() error {
	if e.shut == nil {
		return nil
	}
	return e.shut()
}

// openEngine makes a run's model as it is before anything was learnt. No workers are all cores; notice is told what servers
// do wrong. Close it.
func openEngine(ctx context.Context, run *store.Run, cfg runConfig, w world, workers int, notice func(text string)) (*engine, error) {
	if workers <= 0 {
		workers = runtime.NumCPU()
	}
	if cfg.Server.URL != "" {
		served, err := cfg.Server.open(ctx, cfg.Train.Crowd.Episodes, notice)
		return &engine{served: served}, err
	}
	if cfg.Tinker.URL != "" {
		return openDistant(ctx, run, cfg, w, notice)
	}
	tok, err := tokenizer(ctx, run, cfg, w)
	if err != nil {
		return nil, err
	}
	e := &engine{tokenizer: tok, template: chat.Plain()}
	if cfg.Model.Pretrained != "" {
		if e.template, err = pretrainedTemplate(cfg.Model.Pretrained, tok); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Model.Pretrained, err)
		}
	}
	e.again = func(ctx context.Context) (policy.Learner, error) { return newLearner(ctx, cfg, tok, workers) }
	e.learner, err = newLearner(ctx, cfg, tok, workers)
	return e, err
}

// context is the most ids of a sequence; 0 where only a server knows it.
func (e *engine) context() int {
	switch {
	case e.served != nil:
		return 0
	case e.distant != nil:
		return e.distant.Context()
	}
	return e.learner.Model().Config().Context
}

// learns is what learns; nil where nothing does.
func (e *engine) learns() policy.Learner {
	switch {
	case e.served != nil:
		return nil
	case e.distant != nil:
		return e.distant
	}
	return e.learner
}

// policy answers with the weights as they are.
func (e *engine) policy(ctx context.Context) (policy.Policy, error) {
	if e.served != nil {
		return e.served, nil
	}
	sampler, err := e.learns().Sampler(ctx)
	if err != nil {
		return nil, err
	}
	return policy.NewChat(sampler, e.tokenizer, e.template), nil
}

// pretrainedTemplate is that of the family a pretrained model belongs to.
func pretrainedTemplate(dir string, tok *chat.Tokenizer) (chat.Template, error) {
	published, err := publishedTemplate(dir)
	if err != nil {
		return chat.Template{}, err
	}
	return chat.TemplateFor(tok, published)
}

// publishedTemplate is the template that the makers of a model give, in a file of its own or among the tokenizer's settings.
func publishedTemplate(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "chat_template.jinja"))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return string(b), err
	}
	b, err = os.ReadFile(filepath.Join(dir, "tokenizer_config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var settings struct {
		Template json.RawMessage `json:"chat_template"` // one, or several with names
	}
	if err == nil {
		err = json.Unmarshal(b, &settings)
	}
	if err != nil {
		return "", fmt.Errorf("tokenizer_config.json: %w", err)
	}
	return string(settings.Template), nil
}

func readTokenizer(path string) (*chat.Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tok, err := chat.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tok, nil
}

// tokenizer reads the pretrained model's tokenizer or the run's, or trains one on the world's own text and keeps it there.
func tokenizer(ctx context.Context, run *store.Run, cfg runConfig, w world) (*chat.Tokenizer, error) {
	if cfg.Model.Pretrained != "" {
		return readTokenizer(filepath.Join(cfg.Model.Pretrained, "tokenizer.json"))
	}
	kept, err := run.Document(ctx, "tokenizer.json")
	if errors.Is(err, store.ErrNotFound) && cfg.WarmFrom != "" {
		err = withRun(ctx, cfg.WarmFrom, func(other *store.Run) error {
			if kept, err = other.Document(ctx, "tokenizer.json"); err != nil {
				return err
			}
			return run.KeepDocument(ctx, "tokenizer.json", kept)
		})
	}
	if err == nil {
		return chat.Load(bytes.NewReader(kept))
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	corpus, err := corpusOf(ctx, cfg, w)
	if err != nil {
		return nil, err
	}
	tok, err := chat.Train(slices.Values(corpus), chat.TrainOptions{
		VocabSize: cfg.Vocabulary, Special: chat.Plain().Special(), Tags: chat.Tags(),
		Pattern: pattern(cfg.World, corpus, w.panels.Warm.Tasks),
	})
	if err != nil {
		return nil, fmt.Errorf("train a tokenizer: %w", err)
	}
	var file bytes.Buffer
	if err := tok.Save(&file); err != nil {
		return nil, err
	}
	return tok, run.KeepDocument(ctx, "tokenizer.json", file.Bytes())
}

// corpusOf is text to train a tokenizer on: what the policy will be shown to say and to read.
func corpusOf(ctx context.Context, cfg runConfig, w world) (corpus []string, err error) {
	if cfg.WarmData.File != "" {
		told, err := cfg.WarmData.read()
		for _, c := range told {
			for _, m := range c {
				corpus = append(corpus, m.Text)
			}
		}
		return corpus, err
	}
	if _, expert := w.suite.(env.Coach); !expert {
		return nil, errors.New("nobody shows how to play in this world: give conversations (--warm-data FILE), take the warm start of a run in the same world (--warm-from DIR), or a model that knows language (--preset pretrained --set model.pretrained=DIR)")
	}
	shown := cfg.Train
	if cfg.World.Name == realShop || cfg.World.Name == madeShop {
		shown.Warm.Vary = 1 // ids of products change, so that none becomes a token of its own: they are to be copied, not known by heart
	}
	if corpus, err = train.Corpus(ctx, shown, w.suite, w.panels.Warm.Tasks, cfg.Corpus); err != nil {
		return nil, fmt.Errorf("text to train a tokenizer on: %w", err)
	}
	return corpus, nil
}

// pattern cuts the text of a world into pieces that no token crosses.
func pattern(c worldConfig, corpus []string, tasks []episode.Task) string {
	switch c.Name {
	case madeShop, realShop:
		return shopPattern
	default:
		return chat.EntityPattern(slices.Values(corpus), 5, train.GoalWords(tasks)...)
	}
}

// shopPattern keeps apart ids of products, words, whole dollars (so that two tokens compare amounts) and their cents; what frames
// them on every page and in every action is one piece. A blank belongs to the word before it: the names of values and the
// words of a query stand behind a colon, a comma, a bracket or a line's start, so that they are the same tokens in the
// instruction, on a page and in an action, and can be copied.
const shopPattern = `(?:click|search)\[|` +
	`(?:Instruction: )?Find me |, and price lower than | dollars(?:\n'Search')?|` +
	`'Back to Search'(?: \[SEP\] '< Prev')?(?: \[SEP\] ')?|Page |\(Total results: |\)' \[SEP\] (?:'< Prev' \[SEP\] )?'Next >'(?: \[SEP\] ')?|` +
	`' \[SEP\] 'Price: \$|' \[SEP\] 'Rating: N\.A\.' \[SEP\] 'Description' \[SEP\] 'Features' \[SEP\] 'Reviews' \[SEP\] 'Buy Now'|' \[SEP\] '\$?|` +
	`Thank you for shopping with us! .* \[SEP\] Purchased \[SEP\] asin \[SEP\] | \[SEP\] options \[SEP\] |\} \[SEP\] attrs .*, max 1\.0\) \[SEP\] | \[SEP\] Reward Details \[SEP\] None|` +
	`Back to Search\n(?:< Prev\n)?|\)\n(?:< Prev\n)?Next >\n?|\nPrice: \$|\nRating: N\.A\.\nDescription\nFeatures\nReviews\nBuy Now|` +
	`Chosen: |Purchased |\nYour score \(min 0\.0, max 1\.0\) |\n\$| to \$|` +
	`B0[0-9A-Z]{8}|[A-Za-z]+ ?|[0-9]{1,3} ?|\.[0-9]{1,2}|\n+`

// newLearner makes the model that the settings describe, and its learner.
func newLearner(ctx context.Context, cfg runConfig, tok *chat.Tokenizer, workers int) (*transformer.Learner, error) {
	seed := episode.Seed(cfg.Train.Seed)
	model, err := newModel(ctx, cfg.Model, tok, seed)
	if err != nil {
		return nil, err
	}
	switch a := cfg.Model.Adapter; {
	case cfg.Model.AdapterFrom != "":
		err = model.ReadAdapter(ctx, cfg.Model.AdapterFrom)
	case a.Rank > 0:
		err = model.Adapt(a, uint64(seed.Derive("adapter")))
	}
	if err != nil {
		return nil, err
	}
	return transformer.NewLearner(model, transformer.LearnerOptions{
		Workers: workers, Precision: cfg.Model.Precision, Recompute: cfg.Model.Recompute, Sampler: transformer.SamplerOptions{Workers: workers},
	}), nil
}

func newModel(ctx context.Context, c modelConfig, tok *chat.Tokenizer, seed episode.Seed) (*transformer.Model, error) {
	if c.Pretrained == "" {
		pieces := make([][]string, tok.VocabSize())
		for i := range pieces {
			pieces[i] = tok.Parts(int32(i))
		}
		m, err := transformer.NewModel(c.shape(tok.VocabSize()), uint64(seed.Derive("weights")), pieces)
		if err == nil && c.Induction {
			if err = m.Induce(); err != nil {
				err = fmt.Errorf("%w (or set model.induction to false)", err)
			}
		}
		return m, err
	}
	return readPretrained(ctx, c.Pretrained, c.Context, tok)
}

// readPretrained opens a model that fits a tokenizer.
func readPretrained(ctx context.Context, dir string, most int, tok *chat.Tokenizer) (*transformer.Model, error) {
	m, err := transformer.ReadPretrained(ctx, dir, transformer.PretrainedOptions{Context: most})
	if err != nil {
		return nil, err
	}
	if v := m.Config().Vocab; tok.VocabSize() > v {
		return nil, fmt.Errorf("%s: its tokenizer has %d tokens, its model %d (are they of one release?)", dir, tok.VocabSize(), v)
	}
	return m, nil
}

// reference is the policy that a run in the middle of learning began it with; nil where there is no KL term, or where
// learning has still to begin.
func (e *engine) reference(ctx context.Context, run *store.Run, cfg runConfig, from train.Checkpoint) (policy.Scorer, error) {
	if cfg.Train.Learn.KL == 0 || from.Phase == train.WarmStart {
		return nil, nil
	}
	saved, err := run.Warm(ctx)
	if err != nil {
		return nil, fmt.Errorf("reference policy: %w", err)
	}
	l, err := e.again(ctx)
	if err == nil {
		err = loadLearner(ctx, l, saved.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("reference policy: %w", err)
	}
	s, err := l.Sampler(ctx)
	if err != nil {
		return nil, fmt.Errorf("reference policy: %w", err)
	}
	return s.(policy.Scorer), nil // every sampler of learners is one
}

// warmFrom loads the end of another run's warm start, and says where to go on from there.
func (e *engine) warmFrom(ctx context.Context, cfg runConfig, panels train.Panels) (train.Checkpoint, error) {
	var from train.Checkpoint
	err := withRun(ctx, cfg.WarmFrom, func(other *store.Run) error {
		saved, err := other.Warm(ctx)
		if err != nil {
			return err
		}
		m, err := other.Manifest(ctx)
		if err != nil {
			return err
		}
		if err := samePanels(m, panels); err != nil {
			return err // it may have seen what this run reports on
		}
		w := cfg.Train.Warm
		from = train.Checkpoint{PolicyVersion: saved.Checkpoint.PolicyVersion, Tokens: saved.Checkpoint.Tokens}
		if w.Updates > 0 {
			from.Round = (w.Updates + w.Round - 1) / w.Round // every round of the warm start is done
		}
		if e.distant != nil && !distantRun(m) {
			return nil // the server offers that run's policy, which is what its model begins as
		}
		return e.load(ctx, saved.Path)
	})
	if err != nil {
		return from, fmt.Errorf("warm start of %s: %w", cfg.WarmFrom, err)
	}
	return from, nil
}

// distantRun says whether a run's weights are on a server.
func distantRun(m store.Manifest) bool {
	var cfg runConfig
	return cfg.decode(m.Config) == nil && cfg.Tinker.URL != ""
}

// load reads a checkpoint.
func (e *engine) load(ctx context.Context, path string) error {
	if e.served != nil {
		return nil // its weights are not ours to load
	}
	return loadLearner(ctx, e.learns(), path)
}

func loadLearner(ctx context.Context, l policy.Learner, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := l.Load(ctx, f); err != nil {
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return nil
}
