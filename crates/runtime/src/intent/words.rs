//! Words that tell the size of a goal, in English, German, French, Spanish, Italian, Portuguese,
//! Russian, Chinese and Japanese.
//!
//! Entries are joined by commas. One stands for itself as whole words; with `*` at its end for every
//! word that begins so. Entries in scripts without spaces are looked for anywhere.

/// Beginnings that carry no meaning, such as words of politeness.
pub(super) const POLITE: &str = "\
     please, can you, could you, would you, i want you to, i need you to, hey, hi, bitte, \
     kannst du, könntest du, s il te plaît, s il vous plaît, peux tu, pouvez vous, por favor, \
     puedes, podrías, per favore, puoi, você pode, пожалуйста, можешь";

/// Beginnings of questions and of single actions that only read.
pub(super) const LOOKS: &str = "\
     what, what s, who, when, which, where, how many, how much, how old, how far, show, list, \
     count, print, read, tell me, define, name, look up, check whether, is, are, does, was, wer, \
     wann, welche*, wie viele, wie viel, wie alt, was ist, wie heißt, was sind, was bedeutet, wo, zeig*, \
     zähl*, liste, nenn*, lies, qui, quand, quel*, combien, qu est ce, où, montre*, affiche*, \
     compte*, liste*, lis, qué, quién, cuándo, cuál*, cuánt*, dónde, muestra*, lista, cuenta, \
     lee, chi, quando, quale, quali, quant*, cosa, dove, mostra*, elenca, conta, leggi, quem, \
     qual, o que, onde, leia, что, кто, когда, какой, какая, сколько, где, покажи, посчитай, \
     перечисли, прочитай, 什么, 是谁, 多少, 几个, 哪个, 显示, 列出, 统计, 何, 誰, いつ, いくつ, どこ, 表示し, 数えて, 見せて";

/// Beginnings of goals that can be answered from their text and general knowledge.
pub(super) const SAYS_ALL: &str = "\
     translate, what is the capital of, what s the capital of, how do you say, spell, \
     what is a synonym, give me a synonym, tell me a joke, write a haiku, write a poem, \
     write a limerick, what does the word, define the word, übersetz*, \
     was ist die hauptstadt, erzähl mir einen witz, schreib ein gedicht, schreibe ein gedicht, \
     schreib einen haiku, traduis, traduisez, quelle est la capitale, comment dit on, \
     raconte moi une blague, écris un poème, traduce, cuál es la capital, cómo se dice, \
     cuéntame un chiste, escribe un poema, traduci, qual è la capitale, come si dice, \
     raccontami una barzelletta, scrivi una poesia, traduza, qual é a capital, como se diz, \
     conte uma piada, escreva um poema, переведи, какая столица, как сказать, расскажи анекдот, \
     напиши стихотворение, 翻译, 首都是, 讲个笑话, 写一首诗, 訳して, 首都は, 俳句を";

/// Words for things on this machine, and for facts that change from day to day.
pub(super) const WORLD: &str = "\
     file*, folder*, directory, directories, repo*, code*, function*, module*, class*, test*, \
     build*, commit*, branch*, log, logs, error*, bug*, database*, server*, page*, website*, \
     site, web, online, email*, mail*, calendar, download*, install*, run, here, this, these, \
     my, our, attached, today, now, current*, latest, newest, weather, price*, news, stock, \
     datei*, ordner*, verzeichnis*, quelltext, fehler*, seite*, hier, diese*, mein*, unser*, \
     heute, jetzt, aktuell*, neueste*, wetter, preis*, fichier*, dossier*, erreur*, ici, ce, \
     cette, ces, mon, ma, mes, notre, aujourd*, maintenant, dernière*, dernier*, météo, prix, \
     archivo*, fichero*, carpeta*, código, aquí, este, esta, estos, estas, mi, mis, hoy, ahora, \
     último*, clima, precio*, cartella, cartelle, codice, qui, questo, questa, questi, mio, mia, \
     oggi, adesso, ultimo, prezzo, arquivo*, pasta*, aqui, meu, minha, hoje, agora, preço*, \
     файл*, папк*, каталог*, код*, ошибк*, сайт*, здесь, этот, эта, эти, мой, мои, сегодня, \
     сейчас, погода, 文件, 目录, 代码, 错误, 网站, 这个, 这里, 今天, 现在, 天气, 价格, 我的, ファイル, フォルダ, コード, エラー, サイト, \
     この, ここ, 今日, 天気, 私の";

/// Words that join one step to the next.
pub(super) const THEN: &str = "\
     then, after that, afterwards, finally, next, and, once, before, dann, danach, anschließend, \
     schließlich, zuletzt, und, bevor, puis, ensuite, après, enfin, et, avant, luego, después, \
     entonces, finalmente, y, antes, poi, dopo, infine, e, prima, depois, então, por fim, затем, \
     потом, после, наконец, и, 然后, 接着, 最后, 并且, 之后, それから, 次に, 最後に, その後, して、";

/// Work that needs a plan first.
pub(super) const BROAD: &str = "\
     refactor*, migrat*, rewrite, redesign*, design, architect*, implement*, develop, build, \
     create an app, from scratch, end to end, full stack, research, investigate, audit, \
     optimise, optimize, benchmark, restructure, reorganise, reorganize, overhaul, compare, \
     analyse, analyze, strategy, roadmap, refaktor*, umstell*, umbau*, entwirf, entwickle*, \
     entwickeln, implementier*, recherchier*, untersuch*, überarbeit*, neu schreiben, \
     vergleich*, analysier*, optimier*, konzept*, refactoris*, migre*, conçois, concevez, \
     développe*, implémente*, recherche*, enquête*, compare*, analyse*, optimise*, refactoriza*, \
     migra*, diseña*, desarrolla*, implementa*, investiga*, compara*, analiza*, optimiza*, \
     progetta*, sviluppa*, ricerca*, confronta*, analizza*, ottimizza*, refatore*, migre, \
     projete, desenvolva*, implemente*, pesquise*, compare, analise*, рефактор*, перенес*, \
     мигр*, спроектир*, разработ*, реализу*, исследу*, сравни*, проанализир*, оптимизир*, 重构, \
     迁移, 设计, 开发, 实现, 研究, 调查, 分析, 优化, 比较, リファクタ, 移行, 設計, 開発, 実装, 調査, 分析, 最適化, 比較";

/// Work over many things.
pub(super) const WIDE: &str = "\
     all, every, each, entire, whole, across, throughout, complete, everything, alle, allen, \
     aller, jede, jeden, jedes, ganze*, gesamte*, komplett*, tous, toutes, tout, toute, chaque, \
     entier, entière, todos, todas, todo, toda, cada, entero, entera, completo, completa, tutti, \
     tutte, tutto, ogni, intero, intera, inteiro, inteira, все, всех, весь, всю, каждый, каждую, \
     целиком, 所有, 全部, 每个, 整个, すべて, 全て, 全体, 各";
