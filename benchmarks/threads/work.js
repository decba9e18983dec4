// Counts words in a map, and awaits a few promises and timers.
'use strict';
const counts = new Map();
for (let i = 0; i < 20000; i++) { const word = 'w' + i * 7919 % 1013; counts.set(word, (counts.get(word) || 0) + 1); }
(async () => {
  let sum = 0;
  for (let i = 0; i < 200; i++) sum += await new Promise(resolve => setImmediate(resolve, i));
  console.log(counts.size, sum);
})();
