// Terms prints what Lucene 8.7 makes of each line of its input. It is Anserini's chain for English: StandardTokenizer,
// EnglishPossessiveFilter, LowerCaseFilter, StopFilter with Lucene's English words, PorterStemFilter. make.py runs it.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.core.StopFilter;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.en.EnglishPossessiveFilter;
import org.apache.lucene.analysis.en.PorterStemFilter;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

public class Terms {
  static List<String> terms(String text) throws Exception {
    StandardTokenizer source = new StandardTokenizer();
    source.setReader(new StringReader(text));
    TokenStream s = new EnglishPossessiveFilter(source);
    s = new LowerCaseFilter(s);
    s = new StopFilter(s, EnglishAnalyzer.ENGLISH_STOP_WORDS_SET);
    s = new PorterStemFilter(s);
    CharTermAttribute term = s.addAttribute(CharTermAttribute.class);
    List<String> out = new ArrayList<>();
    s.reset();
    while (s.incrementToken()) {
      out.add(term.toString());
    }
    s.end();
    s.close();
    return out;
  }

  // Input: a text a line, its UTF-8 bytes in hex. Output: the same, a tab, and the terms in hex, parted by commas.
  public static void main(String[] args) throws Exception {
    HexFormat hex = HexFormat.of();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
    for (String line; (line = in.readLine()) != null; ) {
      List<String> encoded = new ArrayList<>();
      for (String t : terms(new String(hex.parseHex(line), StandardCharsets.UTF_8))) {
        encoded.add(hex.formatHex(t.getBytes(StandardCharsets.UTF_8)));
      }
      out.println(line + "\t" + String.join(",", encoded));
    }
    out.flush();
  }
}
