package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"skillmaster/env"
	"skillmaster/env/alfworld"
	"skillmaster/env/textworld"
	"skillmaster/episode"

	"golang.org/x/sync/errgroup"
)

// dataCmd fetches games, looks at them and packs them.
type dataCmd struct {
	Get    dataGetCmd    `cmd:"" help:"Download a world's games, checked and packed."`
	Import dataImportCmd `cmd:"" help:"Pack games that are there already: a folder in the official layout, or archives of it."`
	List   dataListCmd   `cmd:"" help:"List a world's games."`
	Verify dataVerifyCmd `cmd:"" help:"Read every game and say what is there and what is not."`
	Pack   dataPackCmd   `cmd:"" help:"Write games to files, packed or in the official layout."`
	Shop   dataShopCmd   `cmd:"" help:"Write a generated catalogue in the files of the real shop."`
}

// Help is shown under --help.
func (dataCmd) Help() string {
	return `Examples:
  skillmaster data get alfworld --to games
  skillmaster data verify --env alfworld --data games --released
  skillmaster data list --env household`
}

// dataSource is where games come from.
type dataSource struct {
	Env  string `help:"World: household or shop (generated), alfworld or webshop (the real ones under --data) or textworld (any game files)." default:"household" enum:"household,alfworld,shop,webshop,textworld"`
	Data string `help:"Folder of the real games, packed or in the official layout; of any game files (*.tw-pddl), or one such file." default:"${data}" placeholder:"DIR"`
}

// isShop tells whether the source is a shop, which has goals and no games.
func (s dataSource) isShop() bool { return s.Env == madeShop || s.Env == realShop }

type dataListCmd struct {
	dataSource
	Split string `help:"Only this split." placeholder:"NAME"`
	Tasks bool   `help:"List every task."`
	JSON  bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (dataListCmd) Help() string {
	return "Examples:\n  skillmaster data list\n  skillmaster data list --env alfworld --data ../shared/data --split valid_unseen --tasks"
}

// splitRow is a split of a world.
type splitRow struct {
	Split     string         `json:"split"`
	Games     int            `json:"games"`
	Families  map[string]int `json:"families"`
	Annotated int            `json:"annotated"` // games with people's own sentences for the goal
	Tasks     []episode.Task `json:"tasks,omitempty"`
	General   []leftOut      `json:"general,omitempty"` // games played as any TextWorld game, and why
	Skipped   []leftOut      `json:"skipped"`
	Broken    []string       `json:"broken"` // files, with what is wrong
}

func (c *dataListCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	rows, err := c.rows(ctx, stderr)
	if err != nil {
		return err
	}
	if err := c.print(stdout, rows); err != nil {
		return err
	}
	if n := countBroken(rows); n > 0 {
		return fmt.Errorf("damaged files: %d (skillmaster data verify lists them)", n)
	}
	return nil
}

func (c *dataListCmd) rows(ctx context.Context, stderr io.Writer) ([]splitRow, error) {
	if c.isShop() {
		return c.shopRows(ctx, stderr)
	}
	if c.Env == textGames {
		return textRows(c.Data, cmp.Or(c.Split, textworld.Split))
	}
	suite, err := openGames(gamesOf(c.Env), c.Data)
	if err != nil {
		return nil, err
	}
	splits := suite.Splits()
	if c.Split != "" {
		splits = []string{c.Split}
	}
	return splitRows(ctx, suite, splits, stderr)
}

// textRows reads a folder of any game files, or one of them.
func textRows(path, split string) ([]splitRow, error) {
	suite, err := textworld.Open(path, textworld.Options{})
	if err != nil {
		return nil, err
	}
	tasks, err := suite.Tasks(split)
	if err != nil {
		return nil, err
	}
	skipped, err := suite.Skipped(split)
	if err != nil {
		return nil, err
	}
	row := splitRow{Split: split, Games: len(tasks), Families: map[string]int{}, Tasks: tasks, Skipped: leftOuts(skipped), Broken: []string{}}
	for _, t := range tasks {
		row.Families[t.Family]++
	}
	return []splitRow{row}, nil
}

func (c *dataListCmd) print(stdout io.Writer, rows []splitRow) error {
	switch {
	case c.Tasks && !c.JSON:
		for _, r := range rows {
			for _, t := range r.Tasks {
				fmt.Fprintf(stdout, "%s\t%s\n", t.ID, t.Goal)
			}
		}
		return nil
	case !c.JSON:
		return printSplits(stdout, rows)
	case !c.Tasks:
		for i := range rows {
			rows[i].Tasks = nil
		}
	}
	return printJSON(stdout, rows)
}

// splitRows reads splits and shows how far it is.
func splitRows(ctx context.Context, suite *alfworld.Suite, splits []string, stderr io.Writer) ([]splitRow, error) {
	rows := make([]splitRow, len(splits))
	for i, s := range splits {
		progress := newBar(stderr, s, inGames)
		c, err := suite.Scan(ctx, s, func(done, total int) { progress.update(int64(done), int64(total)) })
		progress.end()
		if err != nil {
			return nil, err
		}
		rows[i] = splitRow{
			Split: s, Games: len(c.Tasks), Families: map[string]int{}, Annotated: c.Annotated, Tasks: c.Tasks, General: leftOuts(c.General), Skipped: leftOuts(c.Skipped), Broken: []string{},
		}
		for _, t := range c.Tasks {
			rows[i].Families[t.Family]++
		}
		for _, err := range c.Broken {
			rows[i].Broken = append(rows[i].Broken, err.Error())
		}
	}
	return rows, nil
}

func countBroken(rows []splitRow) (n int) {
	for _, r := range rows {
		n += len(r.Broken)
	}
	return n
}

func printSplits(stdout io.Writer, rows []splitRow) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "split\tgames\tskipped\tdamaged\tannotated\t")
	families := columns(rows)
	for _, f := range families {
		fmt.Fprintf(w, "%s\t", f)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t", r.Split, r.Games, len(r.Skipped), len(r.Broken), r.Annotated)
		for _, f := range families {
			fmt.Fprintf(w, "%d\t", r.Families[f])
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// columns are the families of a household, or those there are if none of them is.
func columns(rows []splitRow) []string {
	var own, others []string
	for _, f := range alfworld.Families() {
		own = append(own, f.String())
	}
	for _, r := range rows {
		for f := range r.Families {
			if slices.Contains(own, f) {
				return own
			}
			others = append(others, f)
		}
	}
	if len(others) == 0 {
		return own
	}
	return distinct(others)
}

type dataVerifyCmd struct {
	dataSource
	Released bool `help:"Also compare with the number of games of the release, or with its checksums (webshop), and fail if they differ."`
	Full     bool `help:"The catalogue of 1.18 million products, not that of 1,000 (webshop)."`
	Play     bool `help:"Also play every game with an expert that knows everything, and fail if it does not win."`
	Workers  int  `help:"Games played at once." default:"2"`
	JSON     bool `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (dataVerifyCmd) Help() string {
	return `Reads every game of every split and counts them by family. Games that are left out are counted by reason, with examples
(--json lists all); "annotated" are games with people's own sentences for the goal. Damaged files are named, and do not
end the reading. Exit code 1 if anything is wrong.

Examples:
  skillmaster data verify --env alfworld --data ../shared/data --released
  skillmaster data verify --env household --play
  skillmaster data verify --env webshop --data ../shared/data --released

Of a shop: says what of the catalogue was left out and why, counts goals by family, and those that can be won with the product
they were made for: of the real shop's not all can, of a generated one's all must.`
}

// verified is what was found.
type verified struct {
	Splits []splitRow `json:"splits"`
	Wrong  []string   `json:"wrong"`
}

func (c *dataVerifyCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	if c.Env == textGames {
		return usage(fmt.Errorf("nothing is known of these games to compare with: skillmaster data list --env %s reads them all", textGames))
	}
	if c.isShop() {
		return c.verifyShop(ctx, stdout, stderr)
	}
	if c.Full {
		return usage(fmt.Errorf("--full is for --env %s", realShop))
	}
	suite, err := openGames(gamesOf(c.Env), c.Data)
	if err != nil {
		return err
	}
	found := verified{Wrong: []string{}}
	if found.Splits, err = splitRows(ctx, suite, suite.Splits(), stderr); err != nil {
		return err
	}
	if !slices.ContainsFunc(found.Splits, func(r splitRow) bool { return r.Games > 0 }) {
		found.Wrong = append(found.Wrong, "there is no game that can be played")
	}
	if c.Released {
		found.Wrong = append(found.Wrong, compareReleased(found.Splits)...)
	}
	for i, r := range found.Splits {
		if c.Play && len(r.Broken) > 0 {
			fmt.Fprintf(stderr, "split %s: not played, for it has damaged files\n", r.Split)
		} else if c.Play {
			fmt.Fprintf(stderr, "split %s: %d games\n", r.Split, r.Games)
			lost, err := c.playAll(ctx, suite, r.Tasks)
			if err != nil {
				return err
			}
			found.Wrong = append(found.Wrong, lost...)
		}
		found.Splits[i].Tasks = nil
	}
	if err := c.print(stdout, found); err != nil {
		return err
	}
	if n := len(found.Wrong) + countBroken(found.Splits); n > 0 {
		return fmt.Errorf("things that are wrong: %d", n)
	}
	return nil
}

func (c *dataVerifyCmd) print(stdout io.Writer, found verified) error {
	if c.JSON {
		return printJSON(stdout, found)
	}
	if err := printFound(stdout, found.Splits); err != nil {
		return err
	}
	for _, w := range found.Wrong {
		fmt.Fprintln(stdout, "wrong:", w)
	}
	return nil
}

// printFound prints what splits have, what they leave out and why, and what is damaged.
func printFound(stdout io.Writer, rows []splitRow) error {
	if err := printSplits(stdout, rows); err != nil {
		return err
	}
	for _, r := range rows {
		printReasons(stdout, r.Split, "left out", r.Skipped)
		printReasons(stdout, r.Split, "played as any TextWorld game", r.General)
		if len(r.Broken) > 0 {
			fmt.Fprintf(stdout, "%s: %d damaged:\n  %s\n", r.Split, len(r.Broken), some(r.Broken, 20, "\n  "))
		}
	}
	return nil
}

// printReasons prints how many games something holds for, by reason.
func printReasons(stdout io.Writer, split, what string, games []leftOut) {
	ids := map[string][]string{}
	for _, g := range games {
		ids[g.Reason] = append(ids[g.Reason], g.ID)
	}
	for _, reason := range slices.Sorted(maps.Keys(ids)) {
		fmt.Fprintf(stdout, "%s: %d %s: %s (%s)\n", split, len(ids[reason]), what, reason, some(ids[reason], 2, ", "))
	}
}

// some joins the first few of a list and says how many more there are.
func some(list []string, most int, between string) string {
	if len(list) <= most {
		return strings.Join(list, between)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(list[:most], between), between, len(list)-most)
}

// released are the games of ALFWorld's release, by split and in the order of alfworld.Families.
var released = map[string][6]int{
	"train":        {790, 308, 650, 459, 533, 813},
	"valid_seen":   {35, 13, 27, 16, 25, 24},
	"valid_unseen": {24, 18, 31, 23, 21, 17},
}

func compareReleased(rows []splitRow) (wrong []string) {
	for _, split := range slices.Sorted(maps.Keys(released)) {
		i := slices.IndexFunc(rows, func(r splitRow) bool { return r.Split == split })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("split %s is not there", split))
			continue
		}
		for k, f := range alfworld.Families() {
			if got, want := rows[i].Families[f.String()], released[split][k]; got != want {
				wrong = append(wrong, fmt.Sprintf("split %s has %d games of %s, the release %d", split, got, f, want))
			}
		}
	}
	return wrong
}

// playAll plays tasks by the shortest plan, and returns what was not won.
func (c *dataVerifyCmd) playAll(ctx context.Context, suite *alfworld.Suite, tasks []episode.Task) ([]string, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, c.Workers))
	faults := make([]string, len(tasks))
	for i, t := range tasks {
		g.Go(func() error {
			p, err := playExpert(ctx, suite, t, env.Knows)
			if errors.Is(err, alfworld.ErrGeneral) {
				return nil // no expert knows it; it is listed as such
			}
			if err != nil {
				return fmt.Errorf("play %s: %w", t.ID, err)
			}
			if !p.won {
				faults[i] = t.ID + ": the expert does not win"
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(faults, func(s string) bool { return s == "" }), nil
}

type dataPackCmd struct {
	dataSource
	To         string   `help:"Folder to write to." required:"" placeholder:"DIR"`
	Form       string   `help:"packed: a file for each split; official: a folder for each game, which the original engine can play." default:"packed" enum:"packed,official"`
	Split      []string `help:"Splits to write. Default: all." placeholder:"NAME"`
	Games      int      `help:"Games of each split: generated ones (default 100), or so many real ones, evenly spread (default all)." default:"0"`
	Seed       uint64   `help:"Seed of generated games." default:"0"`
	Difficulty float64  `help:"Of generated games: 0, objects lie where they usually lie, to 1, anywhere they may." default:"0"`
	Custom     float64  `help:"Of generated games: share of the things that lie where their house keeps them, usual or not." default:"0"`
	House      uint64   `help:"Which house, with --custom." default:"1"`
	Wording    string   `help:"Make the games speak as since release 0.4 (move) or before it (put). Default: as they do." default:"" enum:",move,put"`
	Texts      string   `help:"Folder with alfred.pddl and alfred.twl2, for --form official. Default: those of the games, else alfworld/ or logic/ under --data." placeholder:"DIR"`
}

// Help is shown under --help.
func (dataPackCmd) Help() string {
	return `Nothing is overwritten: a split that is there already is an error.

Examples:
  skillmaster data pack --games 1000 --split train --to games
  skillmaster data pack --env alfworld --data ~/.cache/alfworld --to packed
  skillmaster data pack --games 20 --form official --to games --texts ~/.cache/alfworld/logic`
}

func (c *dataPackCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	suite, err := c.suite()
	if err != nil {
		return err
	}
	var texts alfworld.Texts
	if c.Form == "official" {
		if texts, err = c.texts(suite); err != nil {
			return err
		}
	}
	splits := c.Split
	if len(splits) == 0 {
		splits = suite.Splits()
	}
	for _, s := range splits {
		games, err := c.games(ctx, suite, s)
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "split %s: %d games\n", s, len(games))
		where, err := c.write(ctx, s, games, texts)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "%s: %d games\n", where, len(games)); err != nil {
			return err
		}
	}
	return nil
}

func (c *dataPackCmd) suite() (*alfworld.Suite, error) {
	if c.Games < 0 {
		return nil, usage(errors.New("--games must not be negative"))
	}
	if c.isShop() {
		return nil, usage(errors.New("shops are not packed here: skillmaster data import packs the real one's files, skillmaster data shop writes a generated one"))
	}
	if c.Env == realGames {
		if c.Seed != 0 || c.Difficulty != 0 || c.Custom != 0 {
			return nil, usage(fmt.Errorf("--seed, --difficulty and --custom are for generated games: leave them out, or use --env %s", household))
		}
		return openGames(gamesOf(c.Env), c.Data)
	}
	n := cmp.Or(c.Games, 100)
	splits := map[string]int{}
	for _, s := range c.Split {
		splits[s] = n
	}
	if len(splits) == 0 {
		splits["train"] = n
	}
	suite, err := alfworld.NewGenerated(alfworld.GeneratedOptions{
		Splits: splits, Seed: episode.Seed(c.Seed), Difficulty: c.Difficulty,
		Custom: alfworld.Custom{Share: c.Custom, Seed: episode.Seed(c.House)},
	})
	return suite, usage(err)
}

func (c *dataPackCmd) texts(suite *alfworld.Suite) (alfworld.Texts, error) {
	if c.Texts != "" {
		return alfworld.ReadTexts(c.Texts)
	}
	if t, ok := suite.Texts(); ok {
		return t, nil
	}
	var errs []error
	for _, sub := range []string{"alfworld", "logic"} {
		t, err := alfworld.ReadTexts(filepath.Join(c.Data, sub))
		if err == nil {
			return t, nil
		}
		errs = append(errs, err)
	}
	return alfworld.Texts{}, fmt.Errorf("the official layout needs the game's rule texts (give their folder with --texts): %w", errors.Join(errs...))
}

// games are those of a split, under ids of the official form.
func (c *dataPackCmd) games(ctx context.Context, suite *alfworld.Suite, split string) ([]*alfworld.Game, error) {
	tasks, err := suite.Tasks(split)
	if err != nil {
		return nil, usage(err)
	}
	if n := c.Games; n > 0 && n < len(tasks) {
		all := tasks
		tasks = make([]episode.Task, n)
		for i := range tasks {
			tasks[i] = all[i*len(all)/n]
		}
	}
	games := make([]*alfworld.Game, len(tasks))
	for i, t := range tasks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if games[i], err = suite.Game(t.ID); err != nil {
			return nil, err
		}
		if games[i], err = c.asWanted(games[i], split); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(games, func(a, b *alfworld.Game) int { return strings.Compare(a.ID, b.ID) })
	return games, nil
}

// wordings by the name of the flag.
var wordings = map[string]alfworld.Wording{alfworld.Move.String(): alfworld.Move, alfworld.Put.String(): alfworld.Put}

// asWanted gives a generated game an id of the official form, and any game the wording that was asked for.
func (c *dataPackCmd) asWanted(g *alfworld.Game, split string) (*alfworld.Game, error) {
	reword := c.Wording != "" && c.Wording != g.Wording.String()
	if c.Env != household && !reword {
		return g, nil
	}
	spec := g.Spec()
	if c.Env == household {
		spec.ID = officialID(split, g.ID)
	}
	if reword {
		spec.Wording, spec.Walkthrough = wordings[c.Wording], nil // the walkthrough spoke as the game did
	}
	return alfworld.NewGame(spec)
}

// officialID is a generated game's id, such as gen/train/pick_two_obj_and_place-pen-None-desk/17, in three parts.
func officialID(split, id string) string {
	parts := strings.Split(id, "/")
	return fmt.Sprintf("%s/%s/%s_%s", split, parts[len(parts)-2], parts[0], parts[len(parts)-1])
}

// write puts a split's games under c.To and returns where.
func (c *dataPackCmd) write(ctx context.Context, split string, games []*alfworld.Game, texts alfworld.Texts) (string, error) {
	where := filepath.Join(c.To, split+".jsonl.gz")
	if c.Form == "official" {
		where = filepath.Join(c.To, "json_2.1.1", split)
	}
	if _, err := os.Lstat(where); err == nil {
		return "", fmt.Errorf("%s is there already: remove it, or choose another --to", where)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(c.To, 0o755); err != nil {
		return "", err
	}
	if c.Form == "packed" {
		return where, writeWhole(where, func(w io.Writer) error { return alfworld.Pack(w, games) })
	}
	for _, g := range games {
		if err := errors.Join(ctx.Err(), alfworld.WriteOfficial(c.To, g, texts)); err != nil {
			return "", err
		}
	}
	return where, nil
}
