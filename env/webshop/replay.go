package webshop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"skillmaster/env"
)

var _ env.Replayer = (*Suite)(nil)

// Replay implements env.Replayer. It knows by its content which form a recording has: episodes of the original with
// every page in both forms, lists of its goals, rankings of its search, rewards of purchases, transcripts of public
// projects and logs of people. Episodes are played with the price bound that they show. Hidden prices are taken from
// episodes_sampled_prices.json beside the recording, if it is there. A file of other values is skipped.
func (s *Suite) Replay(ctx context.Context, folder fs.FS, name string) (result env.Replayed, err error) {
	r := replayer{shop: *s.shop}
	if err := r.takePrices(folder); err != nil {
		return r.result, err
	}
	f, err := folder.Open(name)
	if err != nil {
		return r.result, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	err = env.Records(f, func(n int, raw json.RawMessage) error {
		r.record = n
		return cmp.Or(ctx.Err(), r.replay(name, raw))
	})
	if errors.As(err, &r.result.First) {
		err = nil
	}
	return r.result, err
}

const pricesFile = "episodes_sampled_prices.json"

// replayer plays one recording in a shop of its own. A *env.Difference travels as an error from where it is found.
type replayer struct {
	shop   Shop
	human  *Shop // of the same catalogue, with human goals; made when first needed
	result env.Replayed
	record int
	// of what is being played
	task   string
	step   int
	action string
}

// takePrices sets hidden prices to those that a recording was made with.
func (r *replayer) takePrices(folder fs.FS) error {
	raw, err := fs.ReadFile(folder, pricesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var prices map[string]float64
	if err == nil {
		err = json.Unmarshal(raw, &prices)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pricesFile, err)
	}
	r.shop.prices = slices.Clone(r.shop.prices)
	for asin, p := range prices {
		if i, ok := r.shop.find(asin); ok {
			r.shop.prices[i] = p
		}
	}
	return nil
}

func (r *replayer) replay(name string, raw json.RawMessage) error {
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for i, one := range list {
			if r.record = i + 1; len(one) == 0 || one[0] != '{' {
				return fmt.Errorf("%d: want an object", r.record)
			}
			if err := r.replay(name, one); err != nil {
				return err
			}
		}
		return nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return err
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { _, ok := keys[n]; return !ok })
	}
	r.task, r.step, r.action = "", 0, ""
	switch {
	case has("goal_idx", "steps_text"):
		return decodeThen(raw, r.episode)
	case has("query", "hits"):
		return decodeThen(raw, r.ranking)
	case has("goal_idx", "purchased"):
		return decodeThen(raw, r.purchase)
	case has("steps", "goal_mode"), has("steps", "source"):
		return decodeThen(raw, r.transcript)
	case has("pages", "goal"):
		return decodeThen(raw, r.log)
	case has("weight", "goal_options"):
		return decodeThen(raw, r.goal)
	default:
		if last := len(r.result.Skipped) - 1; last < 0 || r.result.Skipped[last].ID != name {
			r.skip(name, "a table of values, not a recording")
		}
		return nil
	}
}

func decodeThen[T any](raw []byte, play func(T) error) error {
	var v T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return err
	}
	return play(v)
}

func (r *replayer) skip(id, reason string) {
	r.result.Skipped = append(r.result.Skipped, env.Skipped{ID: id, Reason: reason})
}

// same compares one thing; the difference it returns is an error.
func same[T comparable](r *replayer, what string, got, want T) error {
	if got == want {
		return nil
	}
	return r.differ(what, fmt.Sprint(got), fmt.Sprint(want))
}

func sameList(r *replayer, what string, got, want []string) error {
	if slices.Equal(got, want) {
		return nil
	}
	return r.differ(what, fmt.Sprintf("%q", got), fmt.Sprintf("%q", want))
}

func (r *replayer) differ(what, got, want string) error {
	return &env.Difference{Record: r.record, Task: r.task, Step: r.step, Action: r.action, What: what, Got: got, Want: want}
}

// recordedGoal is a goal of the original.
type recordedGoal struct {
	Index        *int            `json:"idx"`
	ASIN         string          `json:"asin"`
	Category     *string         `json:"category"`
	Query        string          `json:"query"`
	Name         *string         `json:"name"`
	Path         *string         `json:"product_category"`
	Instruction  string          `json:"instruction_text"`
	WithoutPrice string          `json:"instruction_without_price"`
	Attributes   []string        `json:"attributes"`
	Most         float64         `json:"price_upper"`
	Options      json.RawMessage `json:"goal_options"`
	Weight       float64         `json:"weight"`
}

// isHuman tells goals that people wrote: their options are a list.
func (w *recordedGoal) isHuman() bool { return len(w.Options) > 0 && w.Options[0] == '[' }

// options are the recorded ones, sorted by group, or in the order of the list.
func (w *recordedGoal) options() (out []GoalOption, err error) {
	if w.isHuman() {
		var values []string
		err = json.Unmarshal(w.Options, &values)
		for _, v := range values {
			out = append(out, GoalOption{Value: v})
		}
		return out, err
	}
	var pairs map[string]string
	err = json.Unmarshal(w.Options, &pairs)
	return chosenOf(pairs), err
}

// chosenOf lists options by group.
func chosenOf(pairs map[string]string) (out []GoalOption) {
	for _, g := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, GoalOption{g, pairs[g]})
	}
	return out
}

// goal compares a goal of the list.
func (r *replayer) goal(w recordedGoal) error {
	if w.Index == nil {
		return errors.New("the goal has no idx")
	}
	r.result.Episodes++
	_, _, err := r.compareGoal(*w.Index, &w)
	return err
}

// compareGoal finds a recorded goal in the shop of its mode, compares it, and gives it the recorded price bound.
func (r *replayer) compareGoal(index int, w *recordedGoal) (*Shop, Goal, error) {
	r.task = fmt.Sprintf("%s/%d", w.ASIN, index)
	shop, err := r.shopOf(w.isHuman())
	if err != nil {
		return nil, Goal{}, err
	}
	if index < 0 || index >= shop.Goals() {
		return nil, Goal{}, r.differ("goals", strconv.Itoa(shop.Goals()), fmt.Sprintf("more than %d", index))
	}
	g := shop.Goal(index)
	options, err := w.options()
	if err != nil {
		return nil, Goal{}, err
	}
	p := shop.product(g.Product)
	bare := strings.TrimSuffix(g.Instruction, boundText(g.Most))
	err = cmp.Or(
		same(r, "product", p.ASIN, w.ASIN),
		same(r, "query", p.Query, w.Query),
		same(r, "instruction", bare, cmp.Or(w.WithoutPrice, strings.TrimSuffix(w.Instruction, boundText(w.Most)))),
		sameList(r, "attributes", g.Attributes, w.Attributes),
		same(r, "options", fmt.Sprintf("%q", g.Options), fmt.Sprintf("%q", options)),
		same(r, "weight", shop.Weight(g.Index), w.Weight),
		sameIf(r, "category", p.Category, w.Category),
		sameIf(r, "title", p.Title, w.Name),
		sameIf(r, "path", p.Path, w.Path),
	)
	return shop, bounded(g, w.Most), err
}

// sameIf compares what is recorded.
func sameIf(r *replayer, what, got string, want *string) error {
	if want == nil {
		return nil
	}
	return same(r, what, got, *want)
}

// bounded is a goal with another price bound.
func bounded(g Goal, most float64) Goal {
	g.Instruction = strings.TrimSuffix(g.Instruction, boundText(g.Most)) + boundText(most)
	g.Most = most
	return g
}

// shopOf is the shop with goals of a mode, in the constant order.
func (r *replayer) shopOf(human bool) (*Shop, error) {
	if r.shop.o.Human == human && r.shop.o.Order == Constant {
		return &r.shop, nil
	}
	if r.human == nil || r.human.o.Human != human {
		other, err := NewShop(r.shop.Catalogue, GoalOptions{Human: human})
		if err != nil {
			return nil, err
		}
		r.human = other
	}
	return r.human, nil
}

// recordedStep is a page of the original and the action that led to it.
type recordedStep struct {
	Action     string   `json:"action"`
	Text       *string  `json:"obs"`
	Reward     *float64 `json:"reward"`
	Done       *bool    `json:"done"`
	Search     *bool    `json:"has_search_bar"`
	Clickables []string `json:"clickables"`
	Exception  string   `json:"exception"` // what the original fell over
	ASINs      []string `json:"asins"`     // on the page
	Total      *int     `json:"total"`     // products found
}

// recordedEpisode is an episode of the original, played once for each form of its pages.
type recordedEpisode struct {
	Tag       string         `json:"tag"`
	GoalIndex int            `json:"goal_idx"`
	Nouns     string         `json:"noun_oracle"`
	Text      []recordedStep `json:"steps_text"`
	Rich      []recordedStep `json:"steps_text_rich"`
	Goal      recordedGoal   `json:"goal"`
	Score     *recordedScore `json:"verbose_info"`
}

// spacedNouns is how the recorded episodes say that nouns were told.
const spacedNouns = "whitespace tokens containing an ASCII letter"

// spaced takes for nouns what stands between white space and has an ASCII letter.
type spaced struct{}

func (spaced) NounsOf(_, title string) []string {
	var nouns []string
	for _, w := range strings.FieldsFunc(title, isSpace) {
		if strings.ContainsFunc(w, func(r rune) bool { return r < 128 && r|0x20 >= 'a' && r|0x20 <= 'z' }) {
			nouns = append(nouns, lower(w))
		}
	}
	return nouns
}

// with is the shop with other nouns.
func (s *Shop) with(n Nouns) *Shop {
	c, other := *s.Catalogue, *s
	c.nouns = n
	other.Catalogue = &c
	return &other
}

func (r *replayer) episode(w recordedEpisode) error {
	if w.Nouns != spacedNouns {
		return fmt.Errorf("nouns told by %q: want %q", w.Nouns, spacedNouns)
	}
	r.result.Episodes++
	shop, g, err := r.compareGoal(w.GoalIndex, &w.Goal)
	if err != nil {
		return err
	}
	shop = shop.with(spaced{})
	if _, err := r.visit(shop, g, w.Text, (*Session).Text); err != nil {
		return err
	}
	v, err := r.visit(shop, g, w.Rich, (*Session).Rich)
	if err != nil {
		return err
	}
	if score, bought := v.Bought(); bought && w.Score != nil {
		return r.compareScore(score, w.Score)
	}
	return nil
}

// visit plays steps and compares each with what show gives. Where the original fell over, the episode ends.
func (r *replayer) visit(shop *Shop, g Goal, steps []recordedStep, show func(*Session) string) (*Session, error) {
	v := shop.NewSession(g, 0)
	for i, w := range steps {
		r.step, r.action = i, w.Action
		took := false
		if i > 0 {
			r.result.Steps++
			took = v.Act(w.Action)
		}
		if w.Exception != "" {
			return v, nil
		}
		if err := r.compareStep(v, took, w, show); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (r *replayer) compareStep(v *Session, took bool, w recordedStep, show func(*Session) string) error {
	done := took && v.at == donePage
	reward := 0.0
	if done {
		reward = v.score.Total
	}
	var err error
	if w.Text != nil {
		err = same(r, "observation", show(v), *w.Text)
	}
	if err == nil && w.Clickables != nil {
		err = sameList(r, "clickables", v.Clickables(), w.Clickables)
	}
	if err == nil && w.Search != nil {
		err = same(r, "search bar", v.HasSearchBar(), *w.Search)
	}
	if err == nil && w.Done != nil {
		err = same(r, "done", done, *w.Done)
	}
	if err == nil && w.Reward != nil {
		err = same(r, "reward", reward, *w.Reward)
	}
	if err == nil && w.ASINs != nil {
		err = sameList(r, "products", r.asins(v.onPage()), w.ASINs)
	}
	if err == nil && w.Total != nil {
		err = same(r, "products found", len(v.hits), *w.Total)
	}
	return err
}

func (r *replayer) asins(products []int32) []string {
	asins := make([]string, len(products))
	for i, p := range products {
		asins[i] = r.shop.asin(int(p))
	}
	return asins
}

// recordedScore are the parts of a reward, as the original names them.
type recordedScore struct {
	Kind             *float64 `json:"r_type"`
	AttributeShare   *float64 `json:"r_att"`
	AttributeWeight  *float64 `json:"w_att"`
	SameQuery        *bool    `json:"query_match"`
	LikeCategory     *bool    `json:"category_match"`
	Title            *float64 `json:"title_score"`
	OptionShare      *float64 `json:"r_option"`
	OptionWeight     *float64 `json:"w_option"`
	Affordable       *bool    `json:"r_price"`
	AffordableWeight *float64 `json:"w_price"`
}

func (r *replayer) compareScore(got Score, w *recordedScore) error {
	share := func(n, of int) float64 { return float64(n) / float64(of) }
	for _, c := range []struct {
		what string
		got  float64
		want *float64
	}{
		{"r_type", got.Kind, w.Kind},
		{"title_score", got.Title, w.Title},
		{"r_att", share(got.Attributes, got.OfAttributes), w.AttributeShare},
		{"w_att", float64(got.OfAttributes) / got.parts(), w.AttributeWeight},
		{"r_option", share(got.Options, got.OfOptions), w.OptionShare},
		{"w_option", float64(got.OfOptions) / got.parts(), w.OptionWeight},
		{"w_price", 1 / got.parts(), w.AffordableWeight},
	} {
		if c.want != nil && c.got != *c.want {
			return r.differ(c.what, float(c.got), float(*c.want))
		}
	}
	for _, c := range []struct {
		what string
		got  bool
		want *bool
	}{{"query_match", got.SameQuery, w.SameQuery}, {"category_match", got.LikeCategory, w.LikeCategory}, {"r_price", got.Affordable, w.Affordable}} {
		if c.want != nil && c.got != *c.want {
			return r.differ(c.what, strconv.FormatBool(c.got), strconv.FormatBool(*c.want))
		}
	}
	return nil
}

// recordedRanking is a query and what the original's search engine found, best first, with scores.
type recordedRanking struct {
	Query string            `json:"query"`
	Hits  []json.RawMessage `json:"hits"`
}

func (r *replayer) ranking(w recordedRanking) error {
	want := make([]string, len(w.Hits))
	for i, h := range w.Hits {
		var score float64
		if err := json.Unmarshal(h, &[]any{&want[i], &score}); err != nil {
			return fmt.Errorf("hit %d: %w", i+1, err)
		}
	}
	r.result.Episodes++
	r.task, r.action = "search", w.Query
	return sameList(r, "products", r.asins(r.shop.answer(w.Query, 0)), want)
}

// recordedPurchase is what a recorded episode bought, and the original's reward with two ways to tell nouns.
type recordedPurchase struct {
	Goal      int               `json:"goal_idx"`
	Purchased string            `json:"purchased"`
	ASIN      string            `json:"goal_asin"`
	Options   map[string]string `json:"options"`
	Price     float64           `json:"price"`
	Most      float64           `json:"price_upper"`
	Spaced    struct {
		Reward float64       `json:"reward"`
		Score  recordedScore `json:"info"`
	} `json:"whitespace"`
	Prose json.RawMessage `json:"prose_v2"` // by a tagger that is not ours
}

func (r *replayer) purchase(w recordedPurchase) error {
	r.task = fmt.Sprintf("%s/%d", w.ASIN, w.Goal)
	shop, err := r.shopOf(false)
	if err != nil {
		return err
	}
	product, ok := shop.find(w.Purchased)
	if !ok || w.Goal < 0 || w.Goal >= shop.Goals() {
		r.skip(r.task, "this catalogue does not have the product or the goal")
		return nil
	}
	r.result.Episodes++
	priced := *shop.with(spaced{})
	priced.prices = slices.Clone(shop.prices)
	priced.prices[product] = w.Price
	g := bounded(priced.Goal(w.Goal), w.Most)
	got := priced.Score(g, int(product), chosenOf(w.Options))
	return cmp.Or(
		same(r, "product", shop.asin(g.Product), w.ASIN),
		same(r, "reward", got.Total, w.Spaced.Reward),
		r.compareScore(got, &w.Spaced.Score),
	)
}

// recordedTranscript is an episode as a public project recorded it. Without an index its goal is the one of its
// instruction.
type recordedTranscript struct {
	GoalIndex *int           `json:"goal_idx"`
	Mode      string         `json:"goal_mode"`
	Data      string         `json:"data"`
	Shuffle   *int           `json:"shuffle_seed"`
	Steps     []recordedStep `json:"steps"`

	Source string          `json:"source"`
	Note   string          `json:"goal_price_note"`
	Proves json.RawMessage `json:"what_it_proves"`
}

func (r *replayer) transcript(w recordedTranscript) error {
	if w.Mode != "" && w.Mode != "synthetic" || w.Shuffle != nil && *w.Shuffle != orderSeed {
		return fmt.Errorf("goals %s, shuffled with %v: want synthetic ones, shuffled with %d", w.Mode, w.Shuffle, orderSeed)
	}
	shop, err := r.shopOf(false)
	if err != nil {
		return err
	}
	if len(w.Steps) == 0 || w.Steps[0].Text == nil {
		return errors.New("the first page is missing")
	}
	parts := strings.Split(*w.Steps[0].Text, separator)
	if len(parts) < 3 {
		return fmt.Errorf("the first page %q has no instruction", *w.Steps[0].Text)
	}
	bare, most, err := cutBound(parts[2])
	if err != nil {
		return err
	}
	g, ok := findGoal(shop, w.GoalIndex, bare)
	if !ok {
		r.skip(parts[2], "this catalogue has no such goal")
		return nil
	}
	r.task = fmt.Sprintf("%s/%d", shop.asin(g.Product), g.Index)
	r.result.Episodes++
	_, err = r.visit(shop, bounded(g, most), w.Steps, (*Session).Text)
	return err
}

// cutBound parts an instruction from its price.
func cutBound(instruction string) (bare string, most float64, err error) {
	bare, price, ok := strings.Cut(instruction, ", and price lower than ")
	if !ok {
		return instruction, unbounded, nil
	}
	most, err = parseAmount(price)
	if err == nil && boundText(most) != instruction[len(bare):] {
		err = fmt.Errorf("the instruction %q does not end with a price", instruction)
	}
	return bare, most, err
}

// findGoal is the goal of an index, or the first with an instruction.
func findGoal(shop *Shop, index *int, bare string) (Goal, bool) {
	if index != nil {
		if *index < 0 || *index >= shop.Goals() {
			return Goal{}, false
		}
		return shop.Goal(*index), true
	}
	for i := range shop.Goals() {
		if g := shop.Goal(i); g.Instruction == bare+boundText(g.Most) {
			return g, true
		}
	}
	return Goal{}, false
}

// recordedLog is a visit of a person, page by page. It says what searches found and what was bought, but not what was
// clicked, and its nouns are told by a tagger that is not ours.
type recordedLog struct {
	Source string       `json:"source"`
	Goal   recordedGoal `json:"goal"`
	Pages  []struct {
		Page    string          `json:"page"`
		Content json.RawMessage `json:"content"`
		Reward  *float64        `json:"reward"`
		Score   *recordedScore  `json:"reward_info"`
	} `json:"pages"`
	Reward *float64       `json:"reward"`
	Score  *recordedScore `json:"reward_info"`
}

func (r *replayer) log(w recordedLog) error {
	r.task = w.Goal.ASIN
	wanted, ok := r.shop.find(w.Goal.ASIN)
	if !ok {
		r.skip(w.Goal.ASIN, "this catalogue does not have the product that the goal is for")
		return nil
	}
	options, err := w.Goal.options()
	if err != nil {
		return err
	}
	r.result.Episodes++
	g := Goal{Product: int(wanted), Instruction: w.Goal.Instruction, Attributes: w.Goal.Attributes, Options: options, Most: w.Goal.Most}
	for i, p := range w.Pages {
		r.step, r.action = i, p.Page
		switch p.Page {
		case "search_results":
			err = decodeThen(p.Content, r.logResults)
		case "done":
			err = decodeThen(p.Content, func(c logPurchase) error { return r.logDone(g, c, p.Reward, p.Score) })
		}
		if err != nil {
			return err
		}
		r.result.Steps++
	}
	return nil
}

// logResultsPage is a page of results.
type logResultsPage struct {
	Keywords []string `json:"keywords"`
	ASINs    []string `json:"search_result_asins"`
	Page     int      `json:"page"`
}

func (r *replayer) logResults(w logResultsPage) error {
	v := Session{hits: r.shop.answer(strings.Join(w.Keywords, " "), 0), number: max(1, w.Page)}
	return sameList(r, "products", r.asins(v.onPage()), w.ASINs)
}

// logPurchase is what was bought.
type logPurchase struct {
	ASIN    string            `json:"asin"`
	Options map[string]string `json:"options"`
	Price   float64           `json:"price"`
}

func (r *replayer) logDone(g Goal, w logPurchase, reward *float64, score *recordedScore) error {
	product, ok := r.shop.find(w.ASIN)
	if !ok {
		return r.differ("product", "not in the catalogue", w.ASIN)
	}
	shop := r.shop
	shop.prices = slices.Clone(shop.prices)
	shop.prices[product] = w.Price
	got := shop.Score(g, int(product), chosenOf(w.Options))
	if score == nil || reward == nil {
		return errors.New("the reward is missing")
	}
	rest := *score
	rest.Kind, rest.Title = nil, nil
	err := r.compareScore(got, &rest)
	if err == nil && int(product) == g.Product {
		err = same(r, "reward", got.Total, *reward)
	}
	return err
}
