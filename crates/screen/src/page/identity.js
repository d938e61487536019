// Numbers that name the nodes of this document for as long as it lives. A number is never given
// twice, and a node keeps its own however it is moved.
const numbers = new WeakMap();
const nodesByNumber = new Map();
const forgotten = new FinalizationRegistry((number) => nodesByNumber.delete(number));
let numbered = 0;

function numberOf(node) {
  let number = numbers.get(node);
  if (number === undefined) {
    number = ++numbered;
    numbers.set(node, number);
    nodesByNumber.set(number, new WeakRef(node));
    forgotten.register(node, number);
  }
  return number;
}

// The element of a number, or null once it is gone. A run of text is its parent's.
function elementOf(number) {
  const node = nodesByNumber.get(number)?.deref();
  if (!node?.isConnected) return null;
  return node.nodeType === Node.TEXT_NODE ? hostOrParent(node) : node;
}
